"""The book of reproductions: printed results of five papers, rules fixed beforehand, and verdicts on their claims."""
