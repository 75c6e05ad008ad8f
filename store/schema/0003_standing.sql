-- Why a run is not official, as JSON of caveats: empty where it is, NULL where nobody has looked by these rules yet.
ALTER TABLE runs ADD COLUMN reasons VARCHAR;
