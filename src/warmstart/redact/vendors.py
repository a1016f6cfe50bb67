r"""The table of secret formats: vendors' prefixes, password hashes, logins in URLs, passwords in commands and sentences.

One rule per format: the kind shown in the placeholder, the RE2 pattern, and, where the form alone proves too little, the
check of the value. With a group `(?P<v>...)` only the group is replaced, otherwise the whole match. Patterns are
open-ended and their minimum lengths low, because tokens grow and excerpts cut them.
"""

from __future__ import annotations

from typing import NamedTuple

_B = r"[A-Za-z0-9]"
_U = r"[A-Za-z0-9_]"
_D = r"[A-Za-z0-9_\-]"
_D64 = r"[A-Za-z0-9+/_\-=]"
_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_Q = r"[\"'\\]{0,2}"
_PLAIN = r"[^\s\"'`<>\x01]"  # a bare value


class VendorRule(NamedTuple):
    """One secret format; `forms.py` defines the checks."""

    kind: str
    pattern: str
    check: str = ""
    head: str = ""  # for a pattern that looks far ahead: its head is searched, then the pattern tried in a window there


RULES: tuple[VendorRule, ...] = (
    # code hosts
    VendorRule("github", rf"gh[pousr]_{_B}{{16,}}"),
    VendorRule("github", rf"github_pat_{_U}{{16,}}"),
    VendorRule("gitlab", r"gl(?:pat|dt|rtr?|cbt|ptt|ft|imt|agent|oas|soat|ffct|wt)-[A-Za-z0-9_\-.=]{12,}"),
    VendorRule("gitlab", rf"GR1348941{_D}{{12,}}"),
    VendorRule("bitbucket", rf"ATBB{_B}{{20,}}"),
    VendorRule("atlassian", rf"AT(?:ATT|CTT|STT|OA)3x{_D64}{{16,}}"),
    VendorRule("atlassian", r"ATTA[0-9a-fA-F]{20,}"),
    VendorRule("sourcegraph", r"sgp_(?:[0-9a-f]{16}_|local_)?[0-9a-f]{20,}"),
    VendorRule("sourcegraph", r"\bslk_[0-9a-f]{20,}"),
    # clouds
    VendorRule("aws", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}"),
    VendorRule("aws", r"bedrock-api-key-[A-Za-z0-9+/=]{16,}"),
    VendorRule("aws", r"\bABSK[A-Za-z0-9+/]{20,}={0,2}"),
    VendorRule("aws", rf"amzn\.mws\.{_UUID}"),
    VendorRule("aws", r"amzn1\.oa2-cs\.v1\.[0-9a-f]{20,}"),
    VendorRule("aws", r"\bda2-[a-z0-9]{26}"),
    VendorRule("aws", r"(?i:X-Amz-(?:Signature|Security-Token|Credential))=(?P<v>[A-Za-z0-9%+/=_\-.]{16,})"),
    VendorRule("google", rf"AIza{_D}{{20,}}"),
    VendorRule("google", r"ya29\.[A-Za-z0-9_\-.]{12,}"),
    VendorRule("google", rf"GOCSPX-{_D}{{12,}}"),
    VendorRule("google", rf"\b1//0{_D}{{20,}}"),
    VendorRule("google", rf"\bAQ\.Ab8{_D}{{20,}}"),
    VendorRule("firebase", rf"\bAAAA{_D}{{7}}:[A-Za-z0-9_\-]{{20,}}"),
    VendorRule("azure", r"(?i:AccountKey|SharedAccessKey|SharedAccessSignature)=(?P<v>[A-Za-z0-9+/=%]{16,})"),
    VendorRule("azure", r"[?&](?i:sig)=(?P<v>[A-Za-z0-9%+/=_\-]{20,})"),
    VendorRule("alibaba", rf"\bLTAI{_B}{{12,}}"),
    VendorRule("tencent", rf"\bAKID{_B}{{13,}}"),
    VendorRule("volcengine", rf"\bAKLT{_B}{{16,}}"),
    VendorRule("yandex", rf"\b(?:AQVN|y[0-6]_){_D}{{20,}}"),
    VendorRule("digitalocean", r"do[opr]_v1_[0-9a-f]{16,}"),
    VendorRule("heroku", rf"HRKU-{_D}{{16,}}"),
    VendorRule("cloudflare", r"\bv1\.0-[0-9a-f]{24}-[0-9a-f]{20,}"),
    VendorRule("cloudflare", rf"\bcf(?:at|ut|k)_{_D}{{20,}}"),
    VendorRule("fly", r"\bFlyV1 [A-Za-z0-9+/=_,\-]{16,}"),
    VendorRule("fly", r"\bfm[12][ar]?_[A-Za-z0-9+/=_\-]{20,}"),
    VendorRule("fly", rf"\bfo1_{_D}{{20,}}"),
    VendorRule("render", rf"\brnd_{_B}{{16,}}"),
    VendorRule("vercel", rf"vercel_blob_rw_{_U}{{16,}}"),
    VendorRule("vercel", rf"\bvc[acikpr]_{_B}{{20,}}"),
    VendorRule("netlify", rf"\bnf[pcoub]_{_B}{{20,}}"),
    VendorRule("scaleway", r"\bSCW[A-Z0-9]{17}\b", "random"),
    VendorRule("tailscale", rf"tskey-[a-z]{{2,12}}-{_D}{{12,}}"),
    # models
    VendorRule("anthropic", rf"sk-ant-{_D}{{8,}}"),
    VendorRule("openai", rf"\bsk-(?:proj|svcacct|service|admin|None)-{_D}{{12,}}"),
    VendorRule("openrouter", r"\bsk-or-v1-[0-9a-f]{16,}"),
    VendorRule("langfuse", rf"\b[sp]k-lf-{_UUID}"),
    VendorRule("openai", rf"\bsk-{_B}{{20,}}"),
    VendorRule("model-api", rf"\bsk-[A-Za-z0-9]{{2,12}}-{_D}{{16,}}", "random"),
    VendorRule("openai", rf"\bsess-{_B}{{20,}}"),
    VendorRule("huggingface", rf"\bhf_{_B}{{16,}}", "random"),
    VendorRule("huggingface", r"\bapi_org_[A-Za-z]{20,}"),
    VendorRule("groq", rf"\bgsk_{_B}{{16,}}"),
    VendorRule("replicate", rf"\br8_{_B}{{16,}}"),
    VendorRule("perplexity", rf"\bpplx-{_B}{{16,}}"),
    VendorRule("xai", rf"\bxai-{_D}{{20,}}", "random"),
    VendorRule("fireworks", rf"\bfw_{_B}{{16,}}", "random"),
    VendorRule("nvidia", rf"nvapi-{_D}{{16,}}"),
    VendorRule("cerebras", rf"\bcsk-{_B}{{20,}}"),
    VendorRule("together", rf"\btgp_v1_{_D}{{16,}}"),
    VendorRule("tavily", rf"\btvly-{_D}{{16,}}"),
    VendorRule("jina", rf"\bjina_{_D}{{20,}}", "random"),
    VendorRule("langsmith", rf"\blsv2_[a-z]{{2}}_{_U}{{16,}}"),
    VendorRule("pinecone", rf"\bpcsk_{_U}{{16,}}"),
    VendorRule("voyage", rf"\bpa-{_D}{{20,}}", "random"),
    VendorRule("firecrawl", r"\bfc-[0-9a-f]{32}\b"),
    VendorRule("e2b", r"\be2b_[0-9a-f]{20,}"),
    VendorRule("elevenlabs", r"\bsk_[0-9a-f]{20,}"),
    VendorRule("anyscale", rf"\besecret_{_B}{{16,}}"),
    VendorRule("brave", rf"\bBSA{_D}{{20,}}", "random"),
    VendorRule("wandb", rf"\bwandb_v1_{_U}{{16,}}"),
    VendorRule("wakatime", r"\bwaka_[0-9a-f]{8}-[0-9a-f\-]{20,}"),
    # packages
    VendorRule("npm", rf"\bnpm_{_B}{{20,}}", "random"),
    VendorRule("pypi", rf"pypi-{_D}{{16,}}", "random"),
    VendorRule("rubygems", r"rubygems_[0-9a-f]{20,}"),
    VendorRule("crates", rf"\bcio{_B}{{32}}\b", "random"),
    VendorRule("nuget", r"\boy2[a-z0-9]{43}\b"),
    VendorRule("clojars", r"CLOJARS_[a-z0-9]{20,}"),
    VendorRule("docker", rf"dckr_[op]at_{_D}{{10,}}"),
    VendorRule("jfrog", r"\bAKC[a-zA-Z0-9]{20,}", "random"),
    VendorRule("jfrog", rf"\bcmVmd{_B}{{20,}}"),
    # chat, mail, telephone
    VendorRule("slack", r"\bxox[a-z](?:\.xox[a-z])?-[A-Za-z0-9\-]{8,}"),
    VendorRule("slack", r"xapp-[0-9]-[A-Za-z0-9\-]{12,}"),
    VendorRule("slack", rf"xwfp-{_D}{{12,}}"),
    VendorRule("slack", r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/(?P<v>[A-Za-z0-9/_\-]{16,})"),
    VendorRule("discord", r"discord(?:app)?\.com/api/(?:v[0-9]+/)?webhooks/(?P<v>[0-9]+/[A-Za-z0-9_\-]{16,})"),
    VendorRule("discord", rf"\bmfa\.{_D}{{20,}}"),
    VendorRule("teams", r"webhook\.office\.com/webhookb2/(?P<v>[A-Za-z0-9/@_\-]{20,})"),
    VendorRule("zapier", r"hooks\.zapier\.com/hooks/catch/(?P<v>[A-Za-z0-9/]{8,})"),
    VendorRule("telegram", rf"\b[0-9]{{6,10}}:A{_D}{{30,40}}"),
    VendorRule("sendgrid", rf"\bSG\.{_D}{{10,}}\.{_D}{{10,}}"),
    VendorRule("mailgun", r"\b(?:pub)?key-[0-9a-zA-Z]{32}\b"),
    VendorRule("mandrill", rf"\bmd-{_D}{{22}}\b", "random"),
    VendorRule("brevo", r"x(?:keys|smtps)ib-[0-9a-f]{20,}-?[A-Za-z0-9]*"),
    VendorRule("resend", rf"\bre_{_B}{{6,}}_{_B}{{16,}}"),
    VendorRule("intercom", r"\bdG9rO[A-Za-z0-9+/]{20,}={0,2}"),
    # money
    VendorRule("stripe", rf"\b[srp]k_(?:live|test|prod)_{_B}{{10,}}"),
    VendorRule("stripe", r"\bwhsec_[A-Za-z0-9+/=]{16,}"),
    VendorRule("square", rf"\bsq0[a-z]{{3}}-{_D}{{16,}}"),
    VendorRule("square", rf"\bEAAA{_D}{{20,}}"),
    VendorRule("facebook", rf"\bEAA{_B}{{20,}}"),
    VendorRule("braintree", r"access_token\$(?:production|sandbox)\$[a-z0-9]{8,}\$[0-9a-f]{16,}"),
    VendorRule("shopify", r"\bshp(?:at|ca|pa|ss|ua|ltk)_[A-Za-z0-9]{16,}"),
    VendorRule("plaid", rf"\b(?:access|public|link)-(?:sandbox|development|production)-{_UUID}"),
    VendorRule("flutterwave", r"\bFLW(?:SEC|PUB)K(?:_TEST)?-[A-Za-z0-9\-]{12,}"),
    VendorRule("easypost", rf"\bEZ[AT]K{_B}{{20,}}"),
    VendorRule("shippo", r"\bshippo_(?:live|test)_[0-9a-f]{20,}"),
    VendorRule("duffel", rf"\bduffel_(?:live|test)_{_D}{{20,}}"),
    VendorRule("lob", r"\b(?:live|test)_(?:pub_)?[0-9a-f]{31,35}\b"),
    VendorRule("wallet", r"\bxprv[A-HJ-NP-Za-km-z1-9]{20,}"),
    VendorRule("wallet", r"\bnsec1[a-z0-9]{20,}"),
    # data, observability, work
    VendorRule("databricks", r"\bd(?:api|kea|ose)[0-9a-f]{20,}(?:-[0-9])?"),
    VendorRule("supabase", r"\bsbp_(?:v0_)?[0-9a-f]{20,}"),
    VendorRule("supabase", rf"\bsb_(?:secret|publishable)_{_D}{{16,}}"),
    VendorRule("planetscale", r"\bpscale_(?:tkn|pw|oauth|otkn)_[A-Za-z0-9_\-.=]{12,}"),
    VendorRule("neon", rf"\bn(?:api|pg)_{_B}{{12,}}", "random"),
    VendorRule("newrelic", r"\bNR(?:AK|II|JS|RA|AA|SP|IQ)-[A-Za-z0-9_\-]{16,}"),
    VendorRule("sentry", r"\bsntry[a-z]{1,2}_[A-Za-z0-9+/=_\-]{16,}"),
    VendorRule("sentry", r"://(?P<v>[0-9a-f]{32}(?::[0-9a-f]{32})?)@[a-z0-9.\-]+(?::[0-9]+)?/[0-9]+"),
    VendorRule("grafana", r"\bglsa_[A-Za-z0-9_]{20,}"),
    VendorRule("grafana", r"\bglc_[A-Za-z0-9+/=_\-]{20,}"),
    VendorRule("posthog", rf"\bph[acrsx]_{_B}{{20,}}"),
    VendorRule("dynatrace", r"\bdt0[a-z][0-9]{2}\.[A-Z0-9]{8,}\.[A-Z0-9]{20,}"),
    VendorRule("honeycomb", r"\bhc[abmx][li][kcs]_[A-Za-z0-9]{20,}"),
    VendorRule("airtable", r"\bpat[A-Za-z0-9]{14}\.[0-9a-f]{20,}"),
    VendorRule("asana", r"\b[0-9]/[0-9]{8,}(?:/[0-9]{8,})?:[0-9a-f]{20,}"),
    VendorRule("figma", rf"\bfig[a-z]_{_D}{{16,}}", "random"),
    VendorRule("linear", rf"\blin_[a-z]{{2,6}}_{_B}{{16,}}"),
    VendorRule("notion", rf"\bsecret_{_B}{{20,}}"),
    VendorRule("notion", rf"\bntn_{_B}{{20,}}"),
    VendorRule("clickup", r"\bpk_[0-9]{5,}_[A-Z0-9]{20,}"),
    VendorRule("contentful", rf"\bCFPAT-{_D}{{20,}}"),
    VendorRule("typeform", rf"\btfp_{_D}{{20,}}"),
    VendorRule("readme", r"\brdme_[a-z0-9]{20,}"),
    VendorRule("hubspot", rf"\bpat-[a-z]{{2}}[0-9]-{_UUID}"),
    VendorRule("postman", r"\bPMA[KT]-[A-Za-z0-9\-]{16,}"),
    VendorRule("mapbox", rf"\b[spt]k\.eyJ{_D}{{10,}}\.?{_D}*"),
    VendorRule("dropbox", rf"\bsl\.(?:u\.)?{_D}{{20,}}"),
    VendorRule("adobe", r"\bp8e-[A-Za-z0-9]{32}\b"),
    VendorRule("prefect", rf"\bpn[ub]_{_B}{{20,}}"),
    VendorRule("twitter", r"\bAAAAAAAAAAAAAAAA[A-Za-z0-9%]{20,}"),
    # building and running
    VendorRule("circleci", rf"\bCCI(?:PAT|PRJ)_{_U}{{16,}}"),
    VendorRule("buildkite", rf"\bbk(?:ua|aj|at|ct|pt)_{_B}{{20,}}"),
    VendorRule("sonar", r"\bsq[apu]_[0-9a-f]{20,}"),
    VendorRule("snyk", r"\bsnyk_[a-z]{3}\.[A-Za-z0-9_\-.]{16,}"),
    VendorRule("octopus", r"\bAPI-[A-Z0-9]{20,}\b", "random"),
    VendorRule("harness", rf"\bpat\.{_D}{{16,}}\.{_B}{{16,}}\.{_B}{{16,}}"),
    VendorRule("infracost", rf"\bico-{_B}{{32}}\b"),
    VendorRule("vault", rf"\bhv[sbr]\.{_D}{{16,}}"),
    VendorRule("pulumi", r"\bpul-[0-9a-f]{20,}"),
    VendorRule("doppler", r"\bdp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._\-]{16,}"),
    VendorRule("1password", r"\bops_eyJ[A-Za-z0-9_\-+/=]{20,}"),
    VendorRule(
        "1password", r"\bA3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}\b"
    ),
    VendorRule("age", r"AGE-SECRET-KEY-(?:PQ-)?1[A-Za-z0-9]{20,}"),
    VendorRule("wireguard", r"(?i:\bPrivateKey|\bPresharedKey)\s*=\s*(?P<v>[A-Za-z0-9+/]{20,}=?)"),
    VendorRule("ssh", r"Private-Lines: ?[0-9]+\s+(?P<v>(?:[A-Za-z0-9+/=]{20,80}\s+)*[A-Za-z0-9+/=]{1,80})"),
    VendorRule("ssh", r"Private-MAC: ?(?P<v>[0-9a-fA-F]{20,})"),
    VendorRule(
        "ssh", r"\bb3BlbnNzaC1rZXktdjE[A-Za-z0-9+/=]*(?:\s{1,9}[A-Za-z0-9+/=]{20,})*(?:\s{1,9}[A-Za-z0-9+/]+=)?"
    ),
    # tokens of no single vendor
    VendorRule("jwt", r"\beyJ[A-Za-z0-9_\-=]{6,}\.[A-Za-z0-9_\-=]{4,}(?:\.[A-Za-z0-9_\-=]*){0,3}"),
    VendorRule(
        "hash",
        r"\$(?:apr1|2[abxy]|[156]|7|y|gy|sha1|md5|argon2(?:id?|d)|scrypt|pbkdf2(?:-[a-z0-9]+)?"
        r"|bcrypt-sha256)\$[A-Za-z0-9./$=,+\-]{12,}",
    ),
    VendorRule(
        "hash", r"\b(?:pbkdf2_sha(?:1|256)|bcrypt(?:_sha256)?|argon2|scrypt|scram-sha-256)\$[A-Za-z0-9./$=,+:\-]{12,}"
    ),
    VendorRule("hash", r"\bSCRAM-SHA-256\$[A-Za-z0-9+/=:$]{20,}"),
    VendorRule("hash", r"\{S?SHA(?:256|512)?\}[A-Za-z0-9+/=]{16,}|\{(?:CRYPT|crypt|MD5|SMD5)\}[A-Za-z0-9+/=$.]{10,}"),
    VendorRule("wallet", r"\b0x[0-9a-f]{64}\b", "unhashed"),
    # recognised by their place
    VendorRule("url-password", r"://[^\s/@:\"'`<>\x01?#]*:(?P<v>[^\s/\"'`<>\x01]+)@", "secret"),
    VendorRule("url-token", r"://(?P<v>[A-Za-z0-9_\-.~%]{16,})@", "random"),
    VendorRule("bearer", r"(?i)\b(?:bearer|apikey|api-key|token)[ \t]+(?P<v>[A-Za-z0-9\-._~+/=|:]{16,})", "random"),
    VendorRule("bearer", r"(?i)\bbearer[ \t]+(?P<v>[A-Za-z0-9\-._~+/=|:]{6,})", "mixed"),
    VendorRule("basic-auth", r"(?i)\bbasic[ \t]+(?P<v>[A-Za-z0-9+/_\-]{6,}={0,2})", "pair"),
    VendorRule(
        "password",
        rf"(?i)(?:[^\n]{{0,300}}?[ \t])??(?:-u|--user|--proxy-user|-U|-a"
        rf"|--auth)[ \t=]?{_Q}[^\s:\"'\\]{{1,64}}:(?P<v>{_PLAIN}{{1,128}})",
        "flagged",
        r"(?i)\b(?:curl|wget|https?|lftp|xh|svn)[ \t]",
    ),
    VendorRule(
        "password",
        rf"(?:[^\n|;&]{{0,200}}?[ \t])??-(?:p|P|pw|w)[ \t]*{_Q}(?P<v>{_PLAIN}{{3,128}})",
        "flagged",
        r"\b(?:mysql[a-z_]*|mariadb[a-z\-]*|mongo[a-z]*|sqlcmd|bcp|ldap[a-z]{2,}|sshpass|unzip|zip|7z[az]?|plink|pscp"
        r"|mosquitto_[a-z]+|(?:docker|podman|helm[ ]registry|az|oc|cf|skopeo|nerdctl)[ ](?:login|auth))[ \t]",
    ),
    VendorRule(
        "password",
        rf"(?:[^\n|;&]{{0,200}}?[ \t])??(?:-a|--pass)[ \t]+{_Q}(?P<v>{_PLAIN}{{3,128}})",
        "flagged",
        r"\bredis-cli[ \t]",
    ),
    VendorRule(
        "password",
        rf"(?:[^\n|;&]{{0,200}}?[ \t])??(?:-k|-pass(?:in|out)?[ \t]+pass:|-passin|-passout)[ \t]*{_Q}(?P<v>{_PLAIN}{{3,128}})",
        "flagged",
        r"\bopenssl[ \t]",
    ),
    VendorRule(
        "password",
        rf"(?:[^\n|;&]{{0,200}}?[ \t])??-U[ \t]*{_Q}[^\s%\"']{{1,64}}%(?P<v>{_PLAIN}{{2,128}})",
        "flagged",
        r"\b(?:smb[a-z]+|rpcclient|wmic|net)[ \t]",
    ),
    VendorRule(
        "password",
        rf"[^\n|;&]{{0,60}}-[a-zA-Z]*b[a-zA-Z]*[ \t]+(?:[^\s|;&]+[ \t]+){{1,2}}{_Q}(?P<v>{_PLAIN}{{3,128}})",
        "flagged",
        r"\bhtpasswd[ \t]",
    ),
    VendorRule(
        "password",
        r"[^\n|;&]{0,80}?\b[A-Za-z0-9_$#]{1,40}/(?P<v>[^\s\"'`<>@\x01]{1,128})@",
        "secret",
        r"\b(?:sqlplus|impdp|expdp|rman|sqlldr)[ \t]",
    ),
    VendorRule("password", rf"-(?:passin|passout|pass)[ \t]+{_Q}pass:(?P<v>{_PLAIN}+)", "secret"),
    VendorRule(
        "password",
        r"(?i)\bidentified[ \t]+(?:with[ \t]+[a-z0-9_'\"]+[ \t]+)?by[ \t]+(?:password[ \t]+)?[\\]?[\"'](?P<v>"
        r"[^\"'\n\x01]+)",
        "secret",
    ),
    VendorRule(
        "password",
        r"(?i)\b(?:with|encrypted|set"
        r"|login)[ \t]+password[ \t]+(?:for[ \t]+[^\s=]+[ \t]*=[ \t]*)?[\\]?[\"'](?P<v>[^\"'\n\x01]+)",
        "secret",
    ),
    VendorRule(
        "password",
        rf"(?i)\b(?:login|user|machine|account)[ \t\n]+[^\s]+[ \t\n]+(?:password|passwd)[ \t\n]+(?P<v>{_PLAIN}+)",
        "sentence",
    ),
    VendorRule(
        "password",
        rf"(?i)\b(?:requirepass|masterauth|bindpw|rootpw|snmp-server[ \t]+community)[ \t]+[\"']?(?P<v>{_PLAIN}{{3,}})",
        "flagged",
    ),
    VendorRule(
        "password",
        r"(?i)\b(?:password|passphrase|passcode|passwort|kennwort|pwd|pw|pin)[ \t]+(?:is|was|are|ist|lautet|equals"
        r"|to|as|of)[ \t]*:?[ \t]+(?P<v>[\"'`]?[^\s\x01]{3,})",
        "sentence",
    ),
    VendorRule(
        "token",
        r"(?i)\b(?:token|secret|(?:api|access|secret|private|license|auth)[ _\-]?key|credentials?|key)[ \t]+(?:is"
        r"|was|are|ist|equals|to|as|of)[ \t]*:?[ \t]+(?P<v>[\"'`]?[^\s\x01]{6,})",
        "sentence-token",
    ),
    VendorRule(
        "password",
        r"(?i)\b(?:password|passwd|passphrase|passwort|pwd|pass|pw|token|secret|key)[ \t]+(?P<v>[\"'`]?[^\s\x01]{8,})",
        "sentence-drawn",
    ),
    VendorRule(
        "password",
        r"(?i)\b(?:credentials?|creds|logins?)\b[ \t]*[:=(]?[ \t]*[^\s:/|]{1,64}[ \t]*[/:|][ \t]*(?P<v>[^\s\x01]{6,})",
        "sentence-drawn",
    ),
    VendorRule(
        "code",
        r"(?i)\b(?:verification|security|2fa|otp|mfa|one-time|login|auth(?:entication)?|access|recovery"
        r"|backup)[ _\-]?(?:code|pin|passcode)s?[ \t]*(?:is|was|="
        r"|:)[ \t]*[\"'`]?(?P<v>[A-Za-z0-9]{0,12}[0-9][A-Za-z0-9\-]{3,40})",
    ),
    VendorRule(
        "password",
        r"(?i)\b[a-z_]*(?:auth|login|authenticate"
        r"|credentials?)[a-z_]{0,12}[ \t]*=?[ \t]*\([ \t]*[\\]*[\"'][^\"'\n]*[\"'][ \t]*,[ \t]*[\\]*[\"'](?P<v>"
        r"[^\"'\n\x01]{4,})",
        "mixed",
    ),
    VendorRule(
        "password",
        r":(?:[0-9]{2,5}|\*):[A-Za-z0-9_*\-]{1,64}:[A-Za-z0-9_*\-]{1,64}:(?P<v>[^\s\"'`:\x01]{6,})",
        "sentence-drawn",
    ),
    VendorRule("password", r"(?i)ConvertTo-SecureString[ \t]+(?:-String[ \t]+)?[\"'](?P<v>[^\"'\n\x01]{3,})", "secret"),
    VendorRule(
        "authorization",
        r"(?i)\b(?:proxy-)?authorization[ \t]*:[ \t]*(?:digest|aws4-hmac-sha256|hawk|oauth|signature|mac|ntlm"
        r"|negotiate)[ \t]+(?P<v>[^\n\x01]{8,})",
    ),
    VendorRule(
        "mnemonic",
        r"(?i)[^\n]{0,60}?(?P<v>\b(?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})",
        "",
        r"(?i)(?:mnemonic|(?:seed|recovery|backup|secret)[ _\-]?(?:phrase|words?))",
    ),
    VendorRule(
        "cookie",
        r"(?i)\b(?:set-cookie|cookie)[\"']?[ \t]*[:=][ \t]*[\"']?(?P<v>[A-Za-z0-9_.\-]{1,64}=[^\"'\n\x01]{4,})",
        "cookie",
    ),
    VendorRule(
        "sessionid",
        r"(?i)\b(?:phpsessid|jsessionid|asp\.net_sessionid|connect\.sid|sessionid|session_id|sid|csrftoken"
        r"|xsrf-token|_gitlab_session|laravel_session|__secure-[a-z0-9.\-]{1,40}"
        r"|__host-[a-z0-9.\-]{1,40})=(?P<v>[A-Za-z0-9%+/=_\-.:]{10,})",
        "random",
    ),
)

# Formats without a prefix, for whole tokens; `re` patterns, because they are tried on tokens already found.
TOKENS: tuple[tuple[str, str], ...] = (
    ("azure", r"[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{20,}"),
    ("discord", r"[A-Za-z0-9_-]{23,28}\.[A-Za-z0-9_-]{5,7}\.[A-Za-z0-9_-]{20,}"),
    ("mailgun", r"[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}"),
    ("mailchimp", r"[0-9a-f]{32}-us[0-9]{1,2}"),
    ("newrelic", r"[0-9a-f]{36}(?:FFFF)?NRAL"),
    ("terraform", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{20,}"),
    ("yandex", r"t1\.[A-Z0-9a-z_-]{20,}={0,2}\.[A-Z0-9a-z_-]{40,}"),
    ("vault", r"s\.(?=[A-Za-z]*[0-9])[A-Za-z0-9]{24}"),
    ("twilio", r"(?:SK|AC)[0-9a-f]{32}"),
)

# Prefixes that mean a secret even when the end of the text cuts it off.
CUT_SHORT = (
    r"(?:\bgh[pousr]_|github_pat_|\bglpat-|\bxox[abeoprs]-|\bxapp-|sk-ant-|sk-proj-|sk-svcacct-|sk-or-v1-"
    r"|[srp]k_live_|\bAIza|GOCSPX-|\bya29\.|\bAKIA|\bASIA"
    r"|dckr_[op]at_|dop_v1_|\bhvs\.|\bglsa_|\bSG\.|AGE-SECRET-KEY-|\bshpat_|\bgsk_|\bpplx-|\bpscale_|\bnvapi-"
    r"|\bNRAK-|\bPMAK-|\blin_api_|\bATATT3x"
    r"|\bpypi-AgE|\bops_eyJ|\btskey-|\bdp\.[sp]t\.|\bsbp_|\bpcsk_|\brubygems_|\bCCIPAT_|\bwhsec_|\bntn_"
    r"|\beyJ[A-Za-z0-9_\-]{8})[A-Za-z0-9_\-.]*[A-Za-z0-9][A-Za-z0-9_\-.]*"
)
