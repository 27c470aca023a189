"""What people look at: reports, pages of docs/performance, the documentation site."""
