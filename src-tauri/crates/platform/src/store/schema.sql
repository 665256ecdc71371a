-- Times are milliseconds since the epoch. Of tokens, codes and cookies only SHA-256 is kept.

CREATE TABLE IF NOT EXISTS users (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL UNIQUE,
    salt        BLOB NOT NULL,
    hash        BLOB NOT NULL,
    memory_kib  INTEGER NOT NULL,
    passes      INTEGER NOT NULL,
    created_at  INTEGER NOT NULL
) STRICT;

-- A signed-in browser.
CREATE TABLE IF NOT EXISTS sign_ins (
    cookie      BLOB PRIMARY KEY,
    user_id     TEXT NOT NULL REFERENCES users ON DELETE CASCADE,
    csrf        TEXT NOT NULL,
    expires_at  INTEGER NOT NULL
) STRICT;

-- One approval and everything minted from it.
CREATE TABLE IF NOT EXISTS families (
    id          TEXT PRIMARY KEY,
    user_id     TEXT NOT NULL REFERENCES users ON DELETE CASCADE,
    client_id   TEXT NOT NULL,
    scope       TEXT NOT NULL,
    revoked_at  INTEGER
) STRICT;

CREATE TABLE IF NOT EXISTS codes (
    code         BLOB PRIMARY KEY,
    user_id      TEXT NOT NULL REFERENCES users ON DELETE CASCADE,
    client_id    TEXT NOT NULL,
    redirect_uri TEXT NOT NULL,
    scope        TEXT NOT NULL,
    challenge    TEXT NOT NULL,
    expires_at   INTEGER NOT NULL,
    family_id    TEXT REFERENCES families ON DELETE CASCADE -- set when it was used
) STRICT;

CREATE TABLE IF NOT EXISTS tokens (
    token       BLOB PRIMARY KEY,
    kind        TEXT NOT NULL CHECK (kind IN ('access', 'refresh')),
    family_id   TEXT NOT NULL REFERENCES families ON DELETE CASCADE,
    issued_at   INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    rotated_at  INTEGER, -- a refresh token that was used
    revoked_at  INTEGER
) STRICT;
CREATE INDEX IF NOT EXISTS tokens_by_family ON tokens (family_id);

CREATE TABLE IF NOT EXISTS sessions (
    id           TEXT PRIMARY KEY,
    user_id      TEXT NOT NULL REFERENCES users ON DELETE CASCADE,
    created_at   INTEGER NOT NULL,
    ready        INTEGER NOT NULL, -- 0 while it is being made
    machine_id   TEXT,             -- null: the cloud
    allowed_root TEXT,
    fingerprint  TEXT,
    revision     INTEGER,
    root_grant   TEXT,
    CHECK ((machine_id IS NULL) = (root_grant IS NULL))
) STRICT;
CREATE INDEX IF NOT EXISTS sessions_by_user ON sessions (user_id, created_at);

-- Which tools were called and how that ended; never what they read or wrote.
CREATE TABLE IF NOT EXISTS messages (
    session_id  TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
    seq         INTEGER NOT NULL,
    tool        TEXT NOT NULL,
    error       TEXT, -- its code
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (session_id, seq)
) STRICT, WITHOUT ROWID;

-- Computer use, approved for one machine with one set of features.
CREATE TABLE IF NOT EXISTS consents (
    session_id  TEXT PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
    approved    INTEGER NOT NULL,
    machine_id  TEXT NOT NULL,
    features    TEXT NOT NULL, -- sorted JSON of both sets
    decided_at  INTEGER NOT NULL
) STRICT;
