"""Campaigns on other machines: engines that start blocks there, the agent that runs them, and what keeps them together."""
