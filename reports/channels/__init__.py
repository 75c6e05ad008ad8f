"""Ways out: each module does one kind of errand with texts and facts that others made."""
