# make help   this list
# make demo   the whole loop on the built-in stand-in
# make test   the tests
# make check  formatting, vet, staticcheck, and the tree's shape: imports, sizes, cycles, anchors
# make bench  benchmarks; ratios are within one run
# make matrix the transport matrix as a table, 10,000 random exchanges, a body of 1 GB
# make pipeline builds bin/unwire-pipeline, which has a Go module of its own (schema/pipeline)
# make long   what takes longer than a run of the tests may: matrix, long-tests (100,000 messages, 100 kills), cross
#             (builds for other systems), fuzz
# make screenshots the pictures of the README, from a real terminal
# make docs   the man pages and the references of commands and JSON, from the code
# make install the program, completions and man pages below PREFIX (~/.local)
# make release archives, packages and checksums in dist/, by goreleaser
# make eval   how good inference and extraction are, on labelled corpora, beside the rules of public tools
# make fuzz   ten million generated and mutated inputs through text and JSON on all processors (UNWIRE_SEED=n: one of
#             their seeds), and every fuzz target for FUZZEXECS executions or FUZZSECONDS; prints the coverage of each
#             kept corpus
# make fuzz-corpus keep inputs that fuzzing has found, in testdata/fuzz

GO        ?= go
TESTFLAGS ?=
BENCH     ?= .
BENCHTIME ?= 1s
FUZZEXECS   ?= 1000000
FUZZSECONDS ?= 600
GOFUMPT     = $(GO) run mvdan.cc/gofumpt@v0.12.0
GORELEASER  = $(GO) run github.com/goreleaser/goreleaser/v2@v2.16.0
STATICCHECK = $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2

# The folders that hold a Node client or server and its lock file.
NODE_DIRS = $(dir $(wildcard mitm/testdata/node/package.json schema/extract/testdata/node/package.json schema/extract/testdata/generators/package.json cmd/internal/demo/node/package.json \
	replay/probe/testdata/node*/package.json cmd/unwire/testdata/shop/node/package.json cmd/internal/ui/node/package.json cmd/unwire/testdata/opinion/package.json))

# The tests of make long-tests.
LONG = ^(TestLargeCapture|TestLargeFrame|TestLiveInLargeCapture|TestForgedCaptures|TestRecordedIsWhatTheServerLogged|TestRecorderKilledAtAnyTime|TestPassiveKilledAtAnyTime|TestAmplifiedHeaders|TestMegabytesAreCheap|TestServedClientsLong|TestSecondOpinions|TestNoStaleIdentifier|TestNoStaleSpelling|TestWritersKilledAtAnyTime|TestWritersOnAFullDisk|TestHold|TestRandomRules|TestRulesGrowAndShrink)$$

# The folders of Go modules of their own, which ./... does not reach.
MODULES = schema/pipeline

.PHONY: pipeline pipeline-long build docs screenshots install release release-check release-files demo test check bench eval matrix long long-tests long-probe grpcurl cross fuzz fuzz-corpus node-deps test-deps clean

# 'unwire version' prints the commit, even if GOFLAGS turns this off; without git, go build must not look for it.
VCS = $(shell git rev-parse --verify -q HEAD >/dev/null 2>&1 && echo -buildvcs=true)

build:
	$(GO) build $(VCS) -o bin/unwire ./cmd/unwire

pipeline:
	cd schema/pipeline && $(GO) build -o ../../bin/unwire-pipeline ./cmd/unwire-pipeline

# The man pages and the reference of commands, and the reference of JSON output.
docs:
	$(GO) test ./cmd/internal/cli -run '^TestReference$$' -update
	$(GO) test ./cmd/internal/contract -run '^TestDocument$$' -update

# The pictures of the README, from a real terminal (tmux). The tests compare them with what is printed.
screenshots:
	$(GO) test ./cmd/unwire -run '^TestScreenshots$$' -update

# make install puts the program, completions and man pages below PREFIX.
PREFIX ?= $(HOME)/.local
DESTDIR ?=

install: build release-files
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/bash-completion/completions \
	  $(DESTDIR)$(PREFIX)/share/zsh/site-functions $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	install -m 755 bin/unwire $(DESTDIR)$(PREFIX)/bin/unwire
	install -m 644 bin/release/man/* $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 644 bin/release/completions/unwire.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/unwire
	install -m 644 bin/release/completions/_unwire $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_unwire
	install -m 644 bin/release/completions/unwire.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/unwire.fish
	@case ":$$PATH:" in *":$(PREFIX)/bin:"*) ;; *) echo "$(PREFIX)/bin is not in your PATH";; esac

# What a release has beside the program.
release-files: build
	rm -rf bin/release
	mkdir -p bin/release/completions bin/release/man
	bin/unwire completion bash >bin/release/completions/unwire.bash
	bin/unwire completion zsh >bin/release/completions/_unwire
	bin/unwire completion fish >bin/release/completions/unwire.fish
	for page in cmd/unwire/docs/man/*.1; do gzip -9n <$$page >bin/release/man/$$(basename $$page).gz || exit 1; done

# Archives, packages and checksums in dist/, of the tag at HEAD; without one, a snapshot.
release: release-check
	@if git describe --exact-match --tags HEAD >/dev/null 2>&1; then $(GORELEASER) release --clean; else $(GORELEASER) release --clean --snapshot; fi

release-check: cmd/internal/ui/node/node_modules/.installed
	$(GORELEASER) check

demo:
	@GO="$(GO)" sh cmd/internal/demo/build.sh bin/unwire ./cmd/unwire
	@$(MAKE) --no-print-directory node-deps-if-possible
	@bin/unwire demo --node-client cmd/internal/demo/node

test:
	$(GO) test -timeout 30m $(TESTFLAGS) ./...
	for dir in $(MODULES); do (cd $$dir && $(GO) test -timeout 30m $(TESTFLAGS) ./...) || exit 1; done

check: cmd/internal/ui/node/node_modules/.installed
	@test -z "$$($(GOFUMPT) -l .)" || { echo "not formatted by gofumpt:"; $(GOFUMPT) -l .; exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags eval ./schema/eval
	$(STATICCHECK) ./...
	for dir in $(MODULES); do (cd $$dir && $(GO) vet ./... && $(STATICCHECK) ./...) || exit 1; done
	cd cmd/internal/ui/node && node_modules/.bin/tsc --noEmit -p tsconfig.json
	$(GO) test ./cmd/internal/arch
	$(GO) test ./cmd/internal/cli ./cmd/internal/contract -run '^(TestReference|TestDocument)$$'

bench:
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) ./...
	for dir in $(MODULES); do (cd $$dir && $(GO) test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) ./...) || exit 1; done

# Real samples come from Go modules, which are downloaded.
eval:
	@out=$$(mktemp); UNWIRE_EVAL=1 $(GO) test -tags eval -count=1 -timeout 10m -v -run '^TestEval' ./decode/... ./schema/... ./cmd/internal/demo >$$out 2>&1; \
	status=$$?; grep -vE '^(=== |PASS|\?|ok .*no tests to run|testing: warning)' $$out; rm -f $$out; exit $$status

matrix: node-deps
	@out=$$(mktemp); UNWIRE_LONG=1 $(GO) test -count=1 -timeout 10m -v -run '^(TestMatrix|TestRandomExchanges|TestLargeBodyInBoundedMemory|TestSlowReaderSlowsTheSender)$$' ./mitm >$$out 2>&1; \
	status=$$?; grep -vE '^ *(===|--- PASS: TestMatrix/)' $$out; rm -f $$out; exit $$status

# The long runs of tests that are short otherwise.
long-tests: test-deps
	@out=$$(mktemp); UNWIRE_LONG=1 $(GO) test -count=1 -timeout 30m -v -run '$(LONG)' ./mitm ./cmd/unwire ./replay ./cmd/internal/ui >$$out 2>&1; \
	status=$$?; grep -vE '^ *===' $$out; rm -f $$out; exit $$status

# 50 random services at depth 2 on each kind of server, and definitions that are wrong about them.
long-probe: test-deps
	UNWIRE_LONG=1 $(GO) test -count=1 -timeout 2h -run '^(TestNothingWrongIsClaimedOfRandomServices|TestGoServersRevealTheSameOfRandomServices|TestTwoLiesAreSettled)$$' ./replay/probe/oracle

# grpcurl is a second opinion; buf is one of the Node packages.
grpcurl:
	@command -v grpcurl >/dev/null || test -x "$$($(GO) env GOPATH)/bin/grpcurl" || $(GO) install github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3

cross:
	@for target in linux/arm64 darwin/arm64 windows/amd64 freebsd/amd64; do \
	  echo "== $$target"; GOOS=$${target%/*} GOARCH=$${target#*/} $(GO) build ./... || exit 1; \
	done

# 1,000 segments.
pipeline-long:
	cd schema/pipeline && UNWIRE_LONG=1 $(GO) test -count=1 -timeout 60m -v -run '^TestLikeInfer$$' .

long: matrix long-tests long-probe pipeline-long cross release-check fuzz

fuzz:
	GOGC=400 UNWIRE_LONG=1 $(GO) test -count=1 -timeout 2h -v -run '^TestExact$$' ./decode/text
	GO="$(GO)" .ci/fuzz $(FUZZEXECS) $(FUZZSECONDS)

fuzz-corpus:
	GO="$(GO)" .ci/fuzz keep

# The Node clients of the tests and the demo, from their lock files.
node-deps: $(NODE_DIRS:%=%node_modules/.installed)

# What tests run beside them: further JavaScript runtimes (Linux on x86-64, 800 MB), DuckDB, and
# the clients of unwire serve: SDKs (130 MB) and coding agents (Linux on x86-64, 950 MB), and the
# inspector of MCP servers (110 MB).
test-deps: node-deps mitm/launch/testdata/runtimes/node_modules/.installed captures/parquet/testdata/duckdb/node_modules/.installed \
	replay/gateway/testdata/sdk/node_modules/.installed cmd/unwire/testdata/serve/node_modules/.installed cmd/unwire/testdata/mcp/node_modules/.installed grpcurl

# make demo runs one Node client; the packages of the tests are 600 MB.
DEMO_CLIENT = cmd/internal/demo/node/node_modules/.installed

node-deps-if-possible:
	@if command -v npm >/dev/null; then \
	  $(MAKE) --no-print-directory -q $(DEMO_CLIENT) || echo "installing the Node client with npm" >&2; \
	  $(MAKE) --no-print-directory $(DEMO_CLIENT) >/dev/null 2>&1 \
	  || echo "(npm could not install the Node client: the demo runs without it)"; fi

%/node_modules/.installed: %/package.json %/package-lock.json
	cd $* && npm ci --ignore-scripts --no-audit --no-fund
	touch $@

clean:
	rm -rf bin

# The first comment of this file.
.PHONY: help
help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile
