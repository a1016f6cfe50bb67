"""Words that name nobody: common English, the trade's words and products. And first names that are no other word.

The common words are those of the documentation of Python's standard library, of packages and of this project, and some
written by hand, without the forms that `is_common` derives. First names that are also words or products (Mark, Will, Ruby,
Travis) are left out.
"""

from __future__ import annotations

FIRST_NAMES = frozenset(
    """
    aaron abdul abdullah abigail adam adrian adriana agnes agnieszka ahmad ahmed aisha akira alain alan albert
    alberto alejandro aleksandr alena alessandro alex alexander alexandra alexei alfonso alfred alice alicia alina
    allison amanda amina amir amy ana anastasia anders andre andrea andreas andrei andrew andrey andy angela anita
    anja anjali ann anna annette annika anthony antoine anton antonio anya arash arjun armin arnaud arthur artur
    arturo ashley ashok astrid asuka aurelie ayesha barbara bartosz beatrice beatriz benedikt benjamin bernard bernd
    bernhard bettina bianca birgit bjorn blanca bob bogdan boris brandon brenda brian brigitte bruno camila carina
    carla carlos carmen carol carolina caroline carsten catherine cecilia cedric cesar charlotte chiara chloe chris
    christian christina christine christoph christophe christopher claire clara claudia claudio clemens connor
    cristina cynthia damian daniel daniela danielle dariusz dave david deborah deepak denise dennis derek diana
    diego dieter dimitri dirk dmitri dmitry dominik dominique donald dorothy dylan eduardo edward eileen elena
    eleonora elias elisa elisabeth elizabeth ella ellen emil emilia emilio emily emma emmanuel enrico enrique eric
    erik erika ernesto esther eugene eva evelyn fabian fatima felipe fernanda fernando filip finn francesca
    francesco francisco francois frederic frederik friedrich gabriel gabriela gabriele gary geoffrey georg george
    gerald gerard gerhard gilles giorgio giovanni giulia giuseppe gonzalo greg gregor gregory greta guido guillaume
    guillermo gunther gustav hanna hannah hannes hans harald harold haruto hassan heather hector heidi heike
    heinrich heinz helen helena helene helga helmut hendrik henri henrik henry herbert hermann hiroshi holger
    hussein ian ibrahim ignacio igor ilona ilya ines inga ingrid irena irene irina isabel isabella isabelle ismail
    ivan ivana jacek jacob jacqueline jacques jakob jakub james jana janet janina jaroslav javier jeff jeffrey
    jennifer jens jeremy jessica jiri joachim joan joana joanna joao joel joerg johan johanna johannes john johnny
    jonas jonathan jorge jose josef joseph joshua juan judith juha julie julien juliette jurgen justin kamil karen
    karin karl karolina katarina katarzyna kate katharina katherine kathleen katja katrin katya kavita kazuki keiko
    keith kelly kenji kenneth kevin khalid kim kirill kirsten klaus konrad konstantin krishna kristian kristin
    kristina krzysztof kurt kyle lakshmi lars laura lauren laurent leah leila lena leonardo leonie leticia liam
    lidia lina linda lisa lorenzo louis louise luca lucas lucia luigi luis luisa lukas lukasz lydia maciej magda
    magdalena magnus mahmoud malte manfred manuela marcel marcin marco marcos marcus margaret margarita maria
    mariana marianne marie marina mario marion marius marta martha martina mary masha mateo mateusz mathias mathieu
    mathilde matteo matthew matthias mauricio maxim maximilian megan mehdi mehmet melanie melissa michael michaela
    michal michel michelle miguel mihai mikael mike mikhail milena miriam mohamed mohammad mohammed monica monika
    moritz muhammad mustafa nadia nadine naomi natalia natalie natasha nathalie nathan nicholas nicolas nicole
    niklas nikolai nikolaus nikos nils nina nkechi noah nora norbert oksana oleg olga oliver olivia olivier omar
    oscar oskar osman pablo paola paolo patricia patrick patrik paula pauline pawel pedro peggy peter petra philip
    philipp philippe pierre pilar piotr priya priyanka rachel rafael rahul rajesh ralf ramon raquel raul rebecca
    regina reinhard renate rene ricardo richard rita robert roberta roberto rodrigo roland ronald rosie roxana
    rudolf ruth ryan sabine sabrina salma samantha samir samuel sandeep sandra sanjay santiago sara sarah satoshi
    sebastian selma serena serge sergei sergey sergio shirley siddharth sigrid silke silvia simona simone siobhan
    sofia sonia sophia sophie stanislav stefan stefanie stefano stephan stephanie stephen steve steven stuart sunil
    susan susanne suzanne sven svetlana sylvia sylvie tamara tanja tatiana tatjana teresa thea theodor theresa
    thierry thomas thorsten tim timo timothy tina tobias tomas tomasz tracy tristan ulrich ulrike ursula uwe
    valentina valerie vanessa vasily veronica veronika vicente victor vijay viktor vincent vincenzo virginia vivian
    vladimir walter wanda wendy werner wilhelm william wojciech wolfgang xavier yael yannick yasmin yuki yuri yusuf
    yves yvonne zeynep zoe zofia
    """.split()
)
_COMMON = frozenset(
    """
    abandoned abbreviation ability able abort about above absent absolute abstract accents accept acceptable access
    accessibility accessible accessor accidentally according accordion account accumulate accurate achieve
    acknowledged acme acquire across act action actions activate active activity actual adapt add addition
    additional addr address addressable adjacent adjust admin advance advantage advertised advice affect after
    afterwards again against age agent aggregate agree ahead aid aiohttp alert algorithm alias align alignment alike
    alive all allocated allow allowable allowlist almost alone along alongside alpha alphabetically alphanumeric
    already also alter alternate alternative although always amazon ambiguity ambiguous among amount an analogous
    analyse analysis analyze ancestor anchor and android anew angular animation annotate announces anonymous another
    ansible answer anthropic any anyio anymore anyone anything anyway anywhere apache apart api app appear
    appearance append apple applicable application applied apprise approach appropriate approval approve approximate
    april arbitrarily arbitrary architecture archive are area arg argument arithmetic arm around array arrive arrow
    article as ascending ascii ask aspects assembled assembly assert assess assign assignment assist assistant
    associate assume assumption ast async asynchronous asyncio at atomic atomically attach attacker attacks attempt
    attestation attr attribute audience audio audit august auth authenticate authenticator author authoritative
    authority authorization authorized auto autoclass automatic automatically automaton availability available
    avatar average avoid await awaitable aware away aws axes axis azure back backend background backoff backport
    backslash backup backward bad badge bag balance banner bare barrier bars base baseline basename bash basic
    basically basis batch bearer became because become been before beforehand began begin behalf behave behavior
    behaviour behind being believed believes belong below benchmark benefit beside best beta better between beyond
    big billed billing binary bind biome bit bitwise blank blob block blocksize blockwise blue body bold bookkeeping
    bool boolean boot border bot both bottom bound boundary box braces bracket branch break breakpoint brief bring
    broadcast broken browse bubblewrap bucket budget buffer bug bugfix build built builtin bun bunch bundle business
    busy but button bypass byte bytearray bytecode bytestring cache calculate calendar call callable callback came
    can cancel cancellation candidate cannot canonical canvas cap capability capable capacity capital caption
    capture card care careful cargo carousel carried carrier carry cart case cast cat catalog catch categorical
    category caught cause caveat cell center central cert certain certificate chain chakra challenge chance change
    channel char character charset chart chat cheap check checkbox checklist checkout checkpoint child children
    choice choose chose chosen chrome chunk chunksize ci circular circumstances citation claim clarify class classic
    classification classify classmethod claude clause clean cleanup clear click client clock clone close closest
    closure cloud cls cluster cmd code codec codex coerce col cold collapse collect collector collide collisions
    colon color colour column combination combine come comma command comment commit common communication compact
    comparable compare comparison compatibility compatible compilation compile complement complete complex
    complexity compliance compliant complicated component compose composite compound comprehension compress
    computation compute concatenate concept concerns concise concrete concurrency concurrent condition conditional
    confidence config configurable configuration configure confirm confirmation conflict conform confusion
    conjunction connect connection consecutive conservative consider consist consistency consistent console
    consolidate const constant constrained constraint construct constructor consult consume contact contain content
    context contiguous continuation continue contoso contract contradicts contrast contribute control convenience
    convenient convention conversation conversion convert cookie coordinate copied copilot copy copyright core
    coroutine corpus correct correspond cost could count counterpart course cover coverage crash create credential
    criteria critical cron cross cryptographic cryptography css ctx ctypes cumulative current cursor curve custom
    customization customize cut cycle cypress daemon damaged dangerous dark dashboard dashes dask data database
    dataclass dataframe dataset datatype date datetime day dead deadline deadlock deal debian debug december decide
    decimal decision declaration declare declined decode decorate decorator decreasing dedicate deep deepen def
    default defect define definition degrading degree del delay delegate delete deliberately delimited delimiter
    deliver delivery delta demand denial denied deno denominator denote deny depend dependency dependent deploy
    deployment deprecate deps depth derive descendant descending describe description descriptive descriptor
    deserialization deserialize design desirable desired desk desktop despite dest destination destroy detached
    detail detect determine deterministic deterministically dev developer development deviation device diagnose
    diagnostic dialect dialog dict dictating dictionary did diff difference different difficult digest digit
    dimension dir direct directive directory disable disagree discard disconnected discount discouraged discover
    discovery discriminated discriminator disk dispatch display distance distinct distinguish distribute distutils
    div divide division django do doc docker docstring doctest document documentation does doesn doing domain don
    done door dot double down download downstream draft drag drain draw drawn drift drive driven drop dropdown dry
    dsk dto dtype due dummy dump dunder duplex duplicate durability durable duration during dynamic dynamically each
    eager earlier earliest early easier easily easy echo edge edit editor effect effective efficiency efficient
    effort eight either elapsed element eligible ellipsis else elsewhere email embed emit emoji empty emulate enable
    enclosed enclosing encode encountered encounters encrypt end endpoint enforce enforcement engine english enhance
    enough enqueue ensure enter enterprise entire entity entry enum env envelope environ environment ephemeral epoch
    equal equality equivalent error errors escape eslint especially essentially establish estimate etag etc evaluate
    evaluator even event eventually ever every everybody everyday everything everywhere evidence exact examine
    example exc exceed excel except excerpt excess exchange exclude exclusive exec executable execute executive
    executor exhausted exist existence exit expand expansion expect expectation expected expensive experiment
    experimental expiration expire expiry explain explanation explicit explore exponent exponential export expose
    expr express extend extension external extra extract fabrikam fact factor factory fail failed failure fake fall
    fallback false family fancy far fashion fast fastest fault favicon favor feature february fed feed feedback
    fence fetch few field figma figure file filename files filesystem fill filter final finalization finalize find
    fine fingerprint finish finite firebase firefox first fit five fix fixture flag flaky flask flat flattened
    flavor flaws flexibility flexible flight float flood floor flow flush fly focus fold folder follow font footer
    for forbid force foreground foreign forever forged forget fork form formal format forward found foundation four
    fourth fraction fragment frame framework free freedom french frequency frequent fresh friday friendly friends
    from front frontend frontmatter frozen frozenset fsspec full fullstack fully func funcname function functional
    functionality functools further future gain gallery gap garbage gate gateway gathered gave gcloud gemini
    gencodec general generate generator generic genuine geometry german get git github gitlab give given glob global
    globalns globstring go goes going gone good google googleapis got gradient grafana grammar grant graph graphics
    graphql greater greedy green greeting grep grid group groupby grow grown growth guarantee guard guardrail guess
    guest guidance guide gzip hack had haiku half halves hand handle handoff handshake handy happen hard hardware
    harm harmless harness has hash hashable hatch have head health heard heavily heavy height held hello help
    helpful hence here hero hex hexadecimal hidden hide hierarchical hierarchy high highest highlight hint
    historical history hit hold holdout home homebrew honor hood hook hop horizontal host hostile hostname hour
    hover how however html http httpx huge human hundred hyphens icon idea idempotency idempotent identical
    identified identifier identify identity idle ids if iff ignore illegal image imaginary immediate immutable
    impact implement implementation implicit implied imply import importable important importlib impossible improve
    in inbound inc include inclusion inclusive incoming incompatible incomplete inconsistent incorrect increase
    increment incremental indent indentation independent index indicate indicator indices indirect individual infer
    inference infinite infinity info information infrastructure ingest inherit inheritance init initial initialise
    initialization initialize inject inline inner innermost input insensitive insert inside insights inspect
    inspired install installation instance instantiate instead instruction instrument instrumentation int intact
    integer integrate intended intent intentional interact interactive interested interesting interface interleaved
    intermediate internal interpolation interpret interpretation interrupt intersection interval into introduce
    introspection invalid invariant inverse invisible invocation invoice invoke involve is isinstance isolation
    issue isup it item iter iterable iterate iterator its itself january java javascript jest jira job join journal
    json judge july jump june just justify kafka keep keepalive kept kernel key keyboard keyword killed kind know
    knowledge known kubernetes kwarg lab label lack lake lambda land language laptop laravel large largest last late
    latency latest latter launch layer layout lazily lazy lead leaf leak learn least leave led left leftmost legacy
    legal len length less let level lexer lexical lexicographically lib library license lie lifecycle lifespan
    lifetime light lightweight like likewise limit limitation line linear lineno lines link lint linux list listen
    literal litestar little live load local locale localhost localns locate lock log logic logical login logo logout
    lone long longest look lookup loop lose loss lost lot low lowercase lowest machine machinery macros made magic
    mail main maintain major make malformed manage management mandatory manifest manipulating manipulation manner
    manual many map march margin mark markdown market markup mask master match materialization materialized math
    matrix matter max maximal maximum may maybe mean meaningful meant meanwhile measure measurement mechanism media
    median meet member membership memo memoized memory mentioned menu merely merge message met meta metaclass
    metadata meth method metric microseconds microsoft middle middleware might migrate million milliseconds mime
    mimetype mimic min mind minimal minimum minor minus minute mirror mismatch miss missing mistake mix mixin
    mixture mobile mock mod modal modality mode model modern modification modified modify module modulo moment
    monday monitor monorepo month more most motion mount mouse move msg msgspec mtu much multi multiline multimodal
    multipart multiple multiplication multiprocessing must mutable mutate mutual my mypy naive name namedtuple
    namespace narrow native natural nature navbar navigate ndarray near nearest necessarily necessary need negative
    negotiated neighbours neither nested nesting netlify network never new newest newline next nginx nice nine no
    nobody node nodeid noise non none nonempty nonzero nor noreply normal normalise normalization normalize not
    notation note notebook nothing notice notification notified notion november now nowhere npartitions npm nth null
    nullable num number numerator numeric numerical numpy obj object observations observe obtain occur occurrence
    october odd of off official offset often ok old oldest omit on onboarding once one only onto opaque open openai
    operand operate operator opportunity opposed opposite opt optimal optimise optimization optimize option optional
    opus or order orders ordinal ordinary organise organization organize origin original originating orphan other
    otherwise our ourselves out outbound outcome outermost outgoing outline outlive output outright outside over
    overall overflow overhead overlap overlay overloaded overridden override overrule overview overwrite overwritten
    owed own ownership package packed pad page pagination paid pair pandas panel paragraph parallel parallelism
    param parameter parameterized parametrized parent parentheses parquet parse part partial particular partition
    party pass passkey password past patch path pathlib pathname pathspec pattern pause pay payload payment peer
    pending people pep percent percentage perfectly perform performance perhaps period periodically permanently
    permission permit persist persistence persistent person personal phase phone phrase physical pick pickle pid
    piece pin pings pip pipe pipeline pitfall pixels place placeholder placement plain plaintext plan platform
    platformdirs play playback playground playwright please plot plugin plural plus pnpm point policy polish poll
    pool pop popular populate popup port portable portal pos position positional positive possible possibly post
    postgres postgresql potential power powerful practice pre precede precedence precise precondition predefined
    predicate prefer preference prefix preflight preparation prepare prepend preprocessor presence present preserve
    press presumably prettier pretty prevent preview previous price primarily primary primitive principal print
    printable prior priority prisma privacy private probability probably problem proceed process processor produce
    product profile program programmatically progress project prometheus promote prompt proof propagate proper
    property proposal proposed proposes protect protocol prove proven provenance provide provision proxied proxy
    public publish pull punctuation purchase pure purpose push put pyarrow pydantic pygments pytest python qualified
    quality quantity quarter queried query question queue quick quiet quite quorum quota quotation quote race radio
    rails raise ran random range rank rare rate rather ratio raw reach reachable react reactive read readable
    readline ready real realtime reason reasonable rebuild rebuilt receive recent rechunk recognise recognize
    recommend reconcile reconnect reconstruct record recover recoverable recovery recreate recurse recursive red
    redact redesign redirect redis reduce reduction redundant ref refactor reference refine reflect refresh refusal
    refuse regarding regardless regenerate regex region regional register registration registry regression regular
    reject related relationship relative release relevant reliable reliably relied reload rely remain remainder
    remediate remember reminder remote removal remove rename render renderable repair repeat repetition replace
    replacement replay reply report repository repr represent representation reproduce request require required
    requirement res research reserved reset resolution resolve resource resp respect respective respond response
    responsibility responsible responsive rest restart restore restrict result results resumable resume resumption
    retain retention retire retried retrieval retrieve retry return reusable reuse reveal reverse revert review
    revision revoke rewind rewrite rewritten rfc rich ride right risk roadmap robust role rollback room root rotated
    roughly round route routine row rtype ruby rule run runner runtime rust safari safe safety said salt same sample
    sandbox satisfied satisfy saturday save saw say scaffold scalar scale scan scenarios schedule schema scheme
    scope score scratch screen script scroll sdl search searchable second secret section secure security see seek
    seem seen segment seldom select selector self semantic semantically send sense sensitive sent sentence sentinel
    separate separator september seq sequence sequential serialise serializable serialization serialize series serve
    server service session set settle setup seven several shadow shall shallow shape share shared sheet shell shim
    shipping shop short shortcut shorten shortest shorthand should show shown shrink shuffle shutdown sibling side
    sideband sidebar sign signal signature significant silence silent similar simple simplest simplified simplify
    simply simultaneous sin since single singleton sit site situation six size skeleton skill skip slack slash sleep
    slice slightly slot slow small smallest smoke snapshot snippet so social socket soft software sole solution
    solve some somebody someone something sometimes somewhat somewhere sonnet soon sophisticated sort source
    sourcecode space span spanish speak spec special specialized specific specifically specification specified
    specifier specify speech speed spelling spent spinner split spoken spread sprint sql square src ssl stable stack
    stage staging stale stamp stand standalone standard standup stars start starting startup stash stat state
    stateful stateless statement static statically statistics status stay stderr stdin stdlib stdout step still stop
    storage store str straight strategy stream stretch strict string stringified strip stripe strong struct
    structural structure stub stuff style sub subagent subclass subcommand subdirectory subdomains subject
    submission submit submodule subprocess subprotocol subscribe subscription subsequent subset substituted
    substitution substring subtraction subtree subtype succeed success successful such sufficient suffix suggest
    suitable suite sum summary sunday supabase super superclass superset supplied supply support supposed suppress
    sure surface surrogate surrounded surrounding survive suspend suspicious svelte swap switch symbol symbolic
    symlink symmetric sync synchronise synchronization synchronous syntactic syntactically syntax synthesized
    synthetic sys system tab table tag tail tailwind take taken talk tar target task teach team teardown technical
    telemetry tell temp temperature template temporarily temporary ten tenant tenth term terminal terminate
    terraform test tests text textual than thank that the their them theme themselves then there therefore thereof
    these they thin think third this those though thought thread three threshold through throughout throw thrown
    thursday thus tied tier ties time timedelta timeout timestamp timezone title to toast today todo together toggle
    token tokenize told too took tool toolbar tools toolset tooltip top topic torn total touch toward trace
    traceback track traffic trailing training transaction transcribed transcript transfer transform transformation
    transient transition translate transmission transparent transport travels traversal traverse treat treatment
    tree trial tricky tried trigger trim trip triple trivial troubleshoot true truncate trust truth try tuesday
    tunnel tuple turn turtle twice two type typeguard typescript typical typo ubuntu ultimately unable unaffected
    unaltered unambiguous unary unavailable unbound unchanged uncompiled uncompressed unconditionally undefined
    under underline underlying underscore understand understood undo undone unequal unexpected unfinished unhandled
    unhashable unicode unified uniform unify uninstall union unique unit unittest universe unix unknown unless
    unlike unlimited unmodified unnamed unnecessary unpack unpickled unpickling unpredictable unquoted unreadable
    unrecognized unregistered unrelated unresolved unsafe unset unsigned unspecified unsupported until untouched
    untrusted untyped unusable unused unusual unwrap update upgrade upload upon upper uppercase upstream uri url
    urllib usability usable usage use used useful user username using usual util utility uuid vagrant val valid
    validate validator validity value var variable variance variant variety various vary vector vendor verbatim
    verbose vercel verdict verification verified verifier verify version versionadded versionchanged versus vertical
    very via video view violation virtual visibility visible visit visitor visual vite vitest vm vocabulary voice
    vue wait walk want warm warmstart warn was watch way we weak web webpack websocket wednesday week weighed weight
    welcome well went were werkzeug what whatever wheel when whenever where whereas wherever whether which whichever
    while white whitelist whitespace who whoever whole whose why wide widget width wildcard will win window windows
    windsurf wire wireframe wish with withdrawn withheld withhold within without wizard word work workaround
    workflow working workload workspace worktree world worse worst worth would wrap writable write written wrong
    wrote xml yarn year yes yet yield you your yourself zero zip zone zstd
    """.split()
)
_ENDINGS = tuple(
    ending.split(":")
    for ending in "ies:y es: s: ed: ed:e ing: ing:e er: er:e ers: ers:e ly: ion: ion:e ions: ions:e".split()
)


def is_common(word: str) -> bool:
    """Return whether a word in small letters is a common one, or a form of it."""
    return word in _COMMON or any(stem in _COMMON for stem in _list_stems(word))


def _list_stems(word: str) -> list[str]:
    """Return what a word may be a form of: `grouped` of `group`, `stopped` of `stop`."""
    stems = []
    for ending, restored in _ENDINGS:
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= 3:
            stems.append(stem + restored)
            if stem[-1] == stem[-2]:
                stems.append(stem[:-1])
    return stems
