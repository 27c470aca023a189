"""From journals to verdicts: statistics, the claims of the papers, the result. No process is run here."""
