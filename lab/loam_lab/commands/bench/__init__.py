"""`loam bench`: commands of the user's under every allocator, the recommendation, and the search of settings."""
