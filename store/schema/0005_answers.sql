-- Which questions of an eval were answered right, as JSON: NULL where no answers were read.
ALTER TABLE scores ADD COLUMN extra VARCHAR;
