"""Numbers with doubts: arrays in, frozen records of arrays out. Imports nothing of ours; scipy only for `special`."""
