"""What a user types: each command from its options to what it prints."""
