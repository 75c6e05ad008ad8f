"""An S3 server and a proxy that makes its faults, both on loopback."""
