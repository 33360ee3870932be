"""`peerveil calc`: inputs, kinds and files of cases."""
