-- Every statement of the confirmation store. `-- name: x` begins one. Values are bound by name, so the same text works
-- for SQLite and PostgreSQL.

-- name: put_migration
INSERT INTO migrations (number, name, applied) VALUES (:number, :name, :applied);

-- name: all_keys
SELECT name, value, recorded FROM keys ORDER BY name;

-- name: record_key
UPDATE keys SET recorded = :sequence WHERE name = :name;

-- name: put_key
INSERT INTO keys (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING;

-- name: replace_key
UPDATE keys SET value = :value WHERE name = :name;

-- name: put_token
INSERT INTO tokens (id, digest, subject, subject_key, scopes, created, created_by, expires, revoked)
VALUES (:id, :digest, :subject, :subject_key, :scopes, :created, :created_by, :expires, :revoked);

-- name: token_by_digest
SELECT id, digest, subject, subject_key, scopes, created, created_by, expires, revoked
FROM tokens WHERE digest = :digest;

-- name: tokens
SELECT id, digest, subject, subject_key, scopes, created, created_by, expires, revoked
FROM tokens ORDER BY created, id;

-- name: revoke_token
UPDATE tokens SET revoked = :now WHERE id = :id AND revoked IS NULL RETURNING subject;

-- name: subjects
SELECT subject FROM tokens UNION SELECT subject FROM logins UNION SELECT subject FROM sessions
UNION SELECT subject FROM passkeys;

-- name: put_request
INSERT INTO requests (
    id, sequence, action, action_key, description, details, masked, digest, subject, subject_key, credential, claimed,
    session_key, high_risk, quorum, created, timeout, deadline, status, decided, decided_by, reason, execute_by, executed,
    size)
VALUES (
    :id, :sequence, :action, :action_key, :description, :details, :masked, :digest, :subject, :subject_key, :credential,
    :claimed, :session_key, :high_risk, :quorum, :created, :timeout, :deadline, :status, :decided, :decided_by, :reason,
    :execute_by, :executed, :size);

-- name: request
SELECT id, sequence, action, action_key, description, details, masked, digest, subject, subject_key, credential, claimed,
    session_key, high_risk, quorum, created, timeout, deadline, status, decided, decided_by, reason, execute_by, executed,
    size
FROM requests WHERE id = :id;

-- name: requests
-- Lists carry no details: those of two hundred requests are fifty megabytes.
SELECT id, sequence, action, action_key, description, '' AS details, masked, digest, subject, subject_key, credential, claimed,
    session_key, high_risk, quorum, created, timeout, deadline, status, decided, decided_by, reason, execute_by, executed,
    size
FROM requests
WHERE sequence < :before AND (:risk = '' OR high_risk = 1)
ORDER BY sequence DESC LIMIT :limit;

-- name: requests_by_status
SELECT id, sequence, action, action_key, description, '' AS details, masked, digest, subject, subject_key, credential, claimed,
    session_key, high_risk, quorum, created, timeout, deadline, status, decided, decided_by, reason, execute_by, executed,
    size
FROM requests
WHERE status = :status AND sequence < :before AND (:risk = '' OR high_risk = 1)
ORDER BY sequence DESC LIMIT :limit;

-- name: requests_by_action
SELECT id, sequence, action, action_key, description, '' AS details, masked, digest, subject, subject_key, credential, claimed,
    session_key, high_risk, quorum, created, timeout, deadline, status, decided, decided_by, reason, execute_by, executed,
    size
FROM requests
WHERE action_key = :action_key AND sequence < :before AND (:risk = '' OR high_risk = 1)
ORDER BY sequence DESC LIMIT :limit;

-- name: requests_by_action_and_status
SELECT id, sequence, action, action_key, description, '' AS details, masked, digest, subject, subject_key, credential, claimed,
    session_key, high_risk, quorum, created, timeout, deadline, status, decided, decided_by, reason, execute_by, executed,
    size
FROM requests
WHERE action_key = :action_key AND status = :status AND sequence < :before AND (:risk = '' OR high_risk = 1)
ORDER BY sequence DESC LIMIT :limit;

-- name: requests_by_subject
SELECT id, sequence, action, action_key, description, '' AS details, masked, digest, subject, subject_key, credential, claimed,
    session_key, high_risk, quorum, created, timeout, deadline, status, decided, decided_by, reason, execute_by, executed,
    size
FROM requests
WHERE subject_key = :subject_key AND sequence < :before
  AND (:status = '' OR status = :status) AND (:action_key = '' OR action_key = :action_key)
  AND (:risk = '' OR high_risk = 1)
ORDER BY sequence DESC LIMIT :limit;

-- name: votes_between
SELECT request, subject, subject_key, reason, at,
    EXISTS (SELECT 1 FROM tokens WHERE id = votes.credential AND revoked IS NOT NULL)
    OR EXISTS (SELECT 1 FROM sessions WHERE id = votes.credential AND scopes = '')
FROM votes WHERE request IN (SELECT id FROM requests WHERE sequence BETWEEN :first AND :last) ORDER BY at, subject_key;

-- name: notices_between
SELECT request, channel, state, attempts, error FROM outbox
WHERE request IN (SELECT id FROM requests WHERE sequence BETWEEN :first AND :last) ORDER BY id;

-- name: count_pending
SELECT count(*) FROM requests WHERE status = 'pending' AND deadline > :now;

-- name: next_deadline
SELECT min(deadline) FROM requests WHERE status = 'pending';

-- name: due_requests
SELECT id FROM requests WHERE status = 'pending' AND deadline <= :now ORDER BY deadline LIMIT :limit;

-- name: load_of
-- How many requests of a token wait, and how many bytes they hold.
SELECT count(*), coalesce(sum(size), 0) FROM requests
WHERE credential = :credential AND status = 'pending' AND deadline > :now;

-- name: past_of
-- What limits a new request beside the requests that wait. In this order: when its token submitted the n-th latest
-- request of the last hour; denials of its requester, and the last; when exactly the same was denied; requests with its
-- action in the last hour, and the oldest; whether the whitelist may cover it.
SELECT
    (SELECT created FROM requests WHERE credential = :credential AND created > :since AND :skip >= 0
     ORDER BY created DESC LIMIT 1 OFFSET CASE WHEN :skip < 0 THEN 0 ELSE :skip END),
    denied.denials, denied.last,
    (SELECT max(decided) FROM requests
     WHERE subject_key = :subject_key AND status = 'denied' AND decided > :paused AND decided_by <> subject
       AND digest = :digest),
    recent.requests, recent.oldest,
    EXISTS (SELECT 1 FROM whitelist WHERE action_key = :action_key AND session_key = :session_key)
FROM
    (SELECT count(*) AS denials, coalesce(max(decided), 0) AS last FROM requests
     WHERE subject_key = :subject_key AND status = 'denied' AND decided > :remembered AND decided_by <> subject) AS denied,
    (SELECT count(*) AS requests, min(created) AS oldest FROM requests
     WHERE action_key = :action_key AND created > :since) AS recent;

-- name: waiting_of
SELECT id FROM requests WHERE status = 'pending' AND subject_key = :subject_key AND deadline > :now
ORDER BY sequence LIMIT :limit;

-- name: resolve
-- The only statement that decides a pending request. The first decision wins; after the deadline none does.
UPDATE requests
SET status = :status, decided = :now, decided_by = :by, reason = :reason, execute_by = :execute_by
WHERE id = :id AND status = 'pending' AND deadline > :now
RETURNING id;

-- name: expire
-- The only statement that expires a pending request.
UPDATE requests
SET status = 'expired', decided = :now, decided_by = 'clock', reason = 'nobody decided in time'
WHERE id = :id AND status = 'pending' AND deadline <= :now
RETURNING id, action;

-- name: take_up
UPDATE requests SET executed = :now
WHERE id = :id AND executed IS NULL AND status IN ('approved', 'auto_approved') AND execute_by > :now
RETURNING id;

-- name: put_vote
-- A second vote of the same person is possible only after the token or login of the first was revoked.
INSERT INTO votes (request, subject_key, subject, credential, reason, at)
VALUES (:request, :subject_key, :subject, :credential, :reason, :at)
ON CONFLICT (request, subject_key)
DO UPDATE SET subject = excluded.subject, credential = excluded.credential, reason = excluded.reason, at = excluded.at;

-- name: votes
-- A revoked login has no scopes; one that merely ended keeps them.
SELECT subject, subject_key, reason, at,
    EXISTS (SELECT 1 FROM tokens WHERE id = votes.credential AND revoked IS NOT NULL)
    OR EXISTS (SELECT 1 FROM sessions WHERE id = votes.credential AND scopes = '')
FROM votes WHERE request = :request ORDER BY at, subject_key;

-- name: answer
SELECT digest, request FROM answers WHERE credential = :credential AND key = :key;

-- name: put_answer
INSERT INTO answers (credential, key, digest, request) VALUES (:credential, :key, :digest, :request);

-- name: put_allowance
INSERT INTO whitelist (id, action, action_key, session_key, requester_key, digest, created, created_by, expires, removed,
    times, used)
VALUES (:id, :action, :action_key, :session_key, :requester_key, :digest, :created, :created_by, :expires, :removed,
    :times, :used);

-- name: allowance
SELECT id, action, action_key, session_key, requester_key, digest, created, created_by, expires, removed, times, used
FROM whitelist
WHERE action_key = :action_key AND session_key = :session_key AND requester_key IN ('', :requester_key)
  AND (session_key <> '' OR (digest <> '' AND requester_key <> '')) AND (times IS NULL OR used < times)
  AND digest IN ('', :digest) AND removed IS NULL AND expires > :now
ORDER BY created, id;

-- name: allowances
SELECT id, action, action_key, session_key, requester_key, digest, created, created_by, expires, removed, times, used
FROM whitelist WHERE removed IS NULL AND expires > :now AND (times IS NULL OR used < times) ORDER BY created, id;

-- name: remove_allowance
UPDATE whitelist SET removed = :now WHERE id = :id AND removed IS NULL AND expires > :now RETURNING action;

-- name: put_login
INSERT INTO logins (digest, subject, scopes, created, expires) VALUES (:digest, :subject, :scopes, :created, :expires);

-- name: use_login
UPDATE logins SET used = :now WHERE digest = :digest AND used IS NULL AND expires > :now RETURNING subject, scopes;

-- name: put_session
INSERT INTO sessions (id, digest, subject, subject_key, scopes, created, expires)
VALUES (:id, :digest, :subject, :subject_key, :scopes, :created, :expires);

-- name: session
SELECT id, digest, subject, subject_key, scopes, created, expires, ended FROM sessions WHERE digest = :digest;

-- name: end_session
UPDATE sessions SET ended = :now WHERE id = :id AND ended IS NULL RETURNING subject;

-- name: end_sessions_of
-- Also logins that have already ended: an approval given with one may still wait to be executed.
UPDATE sessions SET ended = coalesce(ended, :now), scopes = ''
WHERE subject_key = :subject_key AND scopes <> '' AND expires > :since
RETURNING id, ended = :now AND expires > :now;

-- name: put_notice
INSERT INTO outbox (request, channel, state, due) VALUES (:request, :channel, 'queued', :due);

-- name: due_notices
SELECT id, request, channel, attempts FROM outbox
WHERE state = 'queued' AND due <= :now ORDER BY due, id LIMIT :limit;

-- name: claim_notice
-- Lets only one of several daemons on a database send the notice.
UPDATE outbox SET due = :until WHERE id = :id AND state = 'queued' AND due <= :now RETURNING id;

-- name: settle_notice
UPDATE outbox SET state = :state, attempts = :attempts, due = :due, error = :error WHERE id = :id;

-- name: next_notice
SELECT min(due) FROM outbox WHERE state = 'queued';

-- name: notices
SELECT channel, state, attempts, error FROM outbox WHERE request = :request ORDER BY id;

-- name: put_entry
INSERT INTO audit (sequence, at, event, request, action, actor, credential, details, previous, hash)
VALUES (:sequence, :at, :event, :request, :action, :actor, :credential, :details, :previous, :hash);

-- name: head
SELECT sequence, hash FROM audit ORDER BY sequence DESC LIMIT 1;

-- name: hash_at
SELECT hash FROM audit WHERE sequence = :sequence;

-- name: entries
SELECT sequence, at, event, request, action, actor, credential, details, previous, hash
FROM audit WHERE sequence > :since ORDER BY sequence LIMIT :limit;

-- name: latest_entries
SELECT sequence, at, event, request, action, actor, credential, details, previous, hash
FROM audit ORDER BY sequence DESC LIMIT :limit;

-- name: changed_requests
SELECT sequence, request FROM audit WHERE sequence > :since AND request <> '' ORDER BY sequence LIMIT :limit;

-- name: daemons
SELECT sequence, at, event, request, action, actor, credential, details, previous, hash
FROM audit
WHERE sequence > :since AND sequence <= :until AND event IN ('started', 'stopped', 'policy_differs')
ORDER BY sequence;

-- name: all_entries
SELECT sequence, at, event, request, action, actor, credential, details, previous, hash FROM audit ORDER BY sequence;

-- name: acceptances
SELECT sequence, at, event, request, action, actor, credential, details, previous, hash
FROM audit WHERE event = 'audit_accepted' ORDER BY sequence;

-- name: all_requests
SELECT id, sequence, action, action_key, description, details, masked, digest, subject, subject_key, credential, claimed,
    session_key, high_risk, quorum, created, timeout, deadline, status, decided, decided_by, reason, execute_by, executed,
    size
FROM requests ORDER BY sequence;

-- name: all_votes
SELECT request, subject_key, subject, credential, reason, at FROM votes ORDER BY request, subject_key;

-- name: all_tokens
SELECT id, digest, subject, subject_key, scopes, created, created_by, expires, revoked FROM tokens ORDER BY id;

-- name: all_links
SELECT digest, subject, scopes, created, expires, used FROM logins ORDER BY digest;

-- name: all_logins
SELECT id, digest, subject, subject_key, scopes, created, expires, ended FROM sessions ORDER BY id;

-- name: all_allowances
SELECT id, action, action_key, session_key, requester_key, digest, created, created_by, expires, removed, times, used
FROM whitelist ORDER BY id;

-- name: put_mask
INSERT INTO masked_values (request, mask, fingerprint) VALUES (:request, :mask, :fingerprint);

-- name: all_masks
SELECT request, mask, fingerprint FROM masked_values ORDER BY request;

-- name: masks_of
-- Each mask of a request, and how many other requests with the same value were asked and approved.
SELECT m.mask, count(r.id), coalesce(sum(CASE WHEN r.status IN ('approved', 'auto_approved') THEN 1 ELSE 0 END), 0)
FROM masked_values m
LEFT JOIN masked_values o ON o.fingerprint = m.fingerprint AND o.request <> m.request
LEFT JOIN requests r ON r.id = o.request
WHERE m.request = :request GROUP BY m.mask ORDER BY m.mask;
