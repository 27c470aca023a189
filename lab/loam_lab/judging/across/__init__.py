"""The machine as a factor: does what was found on one machine hold on the others?"""
