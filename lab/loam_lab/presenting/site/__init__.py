"""What is published: the documentation site, its generated reference, man pages, completions, the gallery of studies."""
