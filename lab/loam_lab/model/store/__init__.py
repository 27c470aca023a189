"""What survives: the journals and the folder of a campaign."""
