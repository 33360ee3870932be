"""What a scenario and the log of its run tell the accountant: releases, receipts, and what no proof covers."""
