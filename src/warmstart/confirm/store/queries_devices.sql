-- Statements about passkeys, alerts, pushes and withdrawn requests; see queries.sql.

-- name: put_passkey
INSERT INTO passkeys (id, subject, subject_key, name, public_key, rp, created, vouched, vouched_by, removed)
VALUES (:id, :subject, :subject_key, :name, :public_key, :rp, :created, :vouched, :vouched_by, :removed);

-- name: passkey
SELECT id, subject, subject_key, name, public_key, rp, created, vouched, vouched_by, removed
FROM passkeys WHERE id = :id;

-- name: passkeys
SELECT id, subject, subject_key, name, public_key, rp, created, vouched, vouched_by, removed
FROM passkeys WHERE removed IS NULL ORDER BY created, id;

-- name: any_passkey
-- Also a removed one: once there was a passkey, approvals stay signed.
SELECT id FROM passkeys LIMIT 1;

-- name: all_passkeys
SELECT id, subject, subject_key, name, public_key, rp, created, vouched, vouched_by, removed FROM passkeys ORDER BY id;

-- name: vouch_passkey
UPDATE passkeys SET vouched = :now, vouched_by = :by WHERE id = :id AND vouched IS NULL AND removed IS NULL RETURNING id;

-- name: remove_passkey
UPDATE passkeys SET removed = :now WHERE id = :id AND removed IS NULL RETURNING subject, name;

-- name: withdraw
-- Like `resolve`: only a pending request in time.
UPDATE requests SET status = 'withdrawn', decided = :now, decided_by = :by, reason = :reason
WHERE id = :id AND status = 'pending' AND deadline > :now
RETURNING id;

-- name: use_allowance
UPDATE whitelist SET used = used + 1 WHERE id = :id;

-- name: allowance_by_id
SELECT id, action, action_key, session_key, requester_key, digest, created, created_by, expires, removed, times, used
FROM whitelist WHERE id = :id;

-- name: ring_entries
-- What decides who may sign, and what is allowed in advance by a signature.
SELECT sequence, at, event, request, action, actor, credential, details, previous, hash
FROM audit WHERE sequence > :since
  AND event IN ('passkey_added', 'passkey_vouched', 'passkey_removed', 'whitelisted')
ORDER BY sequence LIMIT :limit;

-- name: entries_of
SELECT sequence, at, event, request, action, actor, credential, details, previous, hash
FROM audit WHERE request = :request AND request <> '' ORDER BY sequence;

-- name: allowance_still
-- The entries that may have allowed a request, for its execution: they may be used up by now.
SELECT id, action, action_key, session_key, requester_key, digest, created, created_by, expires, removed, times, used
FROM whitelist
WHERE action_key = :action_key AND session_key = :session_key AND requester_key IN ('', :requester_key)
  AND (session_key <> '' OR (digest <> '' AND requester_key <> ''))
  AND digest IN ('', :digest) AND removed IS NULL AND expires > :now
ORDER BY created, id;

-- name: mark
SELECT sequence FROM marks WHERE name = :name;

-- name: set_mark
UPDATE marks SET sequence = :sequence WHERE name = :name;

-- name: access_entries
SELECT sequence, at, event, request, action, actor, credential, details, previous, hash
FROM audit WHERE sequence > :since AND event IN ('login', 'token_created', 'passkey_added', 'passkey_vouched')
ORDER BY sequence LIMIT :limit;

-- name: put_alert
INSERT INTO alerts (sequence, channel, state, due) VALUES (:sequence, :channel, 'queued', :due)
ON CONFLICT (sequence, channel) DO NOTHING;

-- name: due_alerts
SELECT a.sequence, a.channel, a.attempts, e.at, e.event, e.actor, e.details
FROM alerts a JOIN audit e ON e.sequence = a.sequence
WHERE a.state = 'queued' AND a.due <= :now ORDER BY a.due, a.sequence LIMIT :limit;

-- name: claim_alert
UPDATE alerts SET due = :until
WHERE sequence = :sequence AND channel = :channel AND state = 'queued' AND due <= :now RETURNING sequence;

-- name: settle_alert
UPDATE alerts SET state = :state, attempts = :attempts, due = :due, error = :error
WHERE sequence = :sequence AND channel = :channel;

-- name: next_alert
SELECT min(due) FROM alerts WHERE state = 'queued';

-- name: alerts
SELECT sequence, channel, state, attempts, error FROM alerts ORDER BY sequence, channel;

-- name: put_push
INSERT INTO pushes (endpoint, subject, session, p256dh, auth, created)
VALUES (:endpoint, :subject, :session, :p256dh, :auth, :created)
ON CONFLICT (endpoint) DO UPDATE SET subject = excluded.subject, session = excluded.session,
    p256dh = excluded.p256dh, auth = excluded.auth, created = excluded.created;

-- name: live_pushes
-- Only for logins that still hold.
SELECT p.endpoint, p.p256dh, p.auth FROM pushes p JOIN sessions s ON s.id = p.session
WHERE s.ended IS NULL AND s.scopes <> '' AND s.expires > :now ORDER BY p.created, p.endpoint;

-- name: count_pushes
SELECT count(*) FROM pushes WHERE session = :session;

-- name: remove_push
DELETE FROM pushes WHERE endpoint = :endpoint;

-- name: remove_pushes_of
DELETE FROM pushes WHERE session = :session;
