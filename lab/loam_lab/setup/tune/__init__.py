"""`loam tune`: machine settings that may be changed for a campaign, written down before each change, and put back."""
