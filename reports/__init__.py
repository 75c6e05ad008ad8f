"""Tells: chooses facts, words them in English and Simplified Chinese, sends them."""
