# make run         builds and starts the gateway, a demo service behind it and its outbox
# make test        runs all checks and tests, also on a clean clone
# make test-fast   during development: style of changed files, unit tests, a few end-to-end tests
#
# All of them use one debug build, which takes a few minutes on two cores. For measurements, use
# `make run CONFIGURATION=release`, which takes about twice as long to build.
SHELL := /bin/bash
.ONESHELL:
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: prove cluster check-guide check-removal bench-hash bench-policy bench-exec fuzz fuzz-passkey fuzz-http2 fuzz-paths fuzz-slice help deps test-deps build moongate programs build-tests run test venv \
  test-fast soak reference unit-test unit-test-beside unit-test-alone end-to-end end-to-end-beside end-to-end-alone bench format lint lint-changed clean screenshots pictures looks

CONFIGURATION ?= debug
CONFIG ?= config
# Debug information of a debug build. For a debugger, use `make build DEBUG_INFO=dwarf`, which rebuilds everything.
DEBUG_INFO ?= none
# A debug build compiles whole modules, because per-file compilation parses the declarations of all other files each
# time. It emits the module interface in the same run, and no debug information. SwiftPM finds tests by an index, for which
# the macros of C++ are not needed.
DEBUG_FLAGS := -debug-info-format $(DEBUG_INFO) -Xcxx -index-ignore-macros -Xswiftc -wmo -Xswiftc -num-threads -Xswiftc 2 -Xswiftc -no-emit-module-separately-wmo
# Optimizing the modules in which tests spend most of their time makes a clean `make test` faster, but each later change
# to them takes half a minute longer to build. So only a clone whose first build is that of `make test` is optimized, and
# all its debug builds are, so that they are shared. `rm .build/optimized` ends it.
OPTIMIZED := .build/optimized
export MOONGATE_OPTIMIZED := $(wildcard $(OPTIMIZED))
# Every build checks explicit imports, so that all targets share one build.
SWIFT_BUILD := swift build -c $(CONFIGURATION) --explicit-target-dependency-import-check error $(if $(filter debug,$(CONFIGURATION)),$(DEBUG_FLAGS))
SWIFT_FILES := Sources Plugins Tests Package.swift

BUILD_PACKAGES := liblua5.4-dev libsqlite3-dev libphonenumber-dev libargon2-dev libcrypt-dev libcurl4-openssl-dev libqrencode-dev libmaxminddb-dev libpq-dev libldap-dev libssl-dev zlib1g-dev
TEST_PACKAGES := curl openssl chromium chromium-headless-shell chromium-driver fonts-lohit-deva fonts-noto-core zbar-tools python3-venv nginx libnginx-mod-stream haproxy postgresql slapd ldap-utils faketime iproute2 nghttp2-client nodejs golang-go git cadaver rclone prometheus php-cli apache2 libapache2-mod-auth-openidc
SOAK_PACKAGES := testssl.sh slowhttptest nghttp2-client
BENCH_PACKAGES := wrk nginx postgresql nghttp2-client openssl
VENV := .build-e2e/venv
# Unused pytest plugins and recompiled tests would add seconds to the start of each worker.
# Programs of the tests start Python by its name: the environment's, not a version manager's script in front of it.
PYTEST := PATH="$(abspath $(VENV))/bin:$$PATH" PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(CURDIR)/.build-e2e/bytecode $(VENV)/bin/python -m pytest -p no:schemathesis -p no:hypothesispytest -p no:anyio
# The folder of the built programs. Asking SwiftPM would wait for a running build.
BIN := $(CURDIR)/.build/$(CONFIGURATION)

# $(call need,PACKAGES): installs missing packages, or prints the command that does.
define need
missing=; for package in $(1); do
  dpkg-query -W -f='$${Status}' "$$package" 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$package"
done
if [ -n "$$missing" ]; then
  if ! command -v apt-get >/dev/null; then
    echo "Moongate needs these Debian packages, or your system's own names for them:$$missing" >&2; exit 1
  elif [ "$$(id -u)" = 0 ]; then as_root=
  elif sudo -n true 2>/dev/null; then as_root=sudo
  else echo "Some system packages are missing. Run:  sudo apt-get install$$missing" >&2; exit 1; fi
  echo "Installing$$missing"
  $$as_root apt-get update -qq
  $$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null
fi
endef

help:
	@sed -n 's/^# //p' Makefile | head -3

deps:
	@command -v swift >/dev/null || { echo "Swift 6.3 or later is needed: https://www.swift.org/install" >&2; exit 1; }
	$(call need,$(BUILD_PACKAGES))

test-deps: deps
	@$(call need,$(TEST_PACKAGES))

build: deps
	@echo "Building (the first build takes three to five minutes on two cores)"
	$(SWIFT_BUILD)

# The programs for `make run`, without benches and test helpers.
programs: moongate $(BIN)/moongate-provider $(BIN)/demo-service

moongate: deps
	@echo "Building (the first build takes about three minutes on two cores)"
	$(SWIFT_BUILD) --product moongate

# Planning a build takes eight seconds of processor time, so skip it for what has not changed.
$(BIN)/moongate-provider: $(shell find Sources Plugins -type f) Package.swift | moongate
	$(SWIFT_BUILD) --product moongate-provider
	touch $@

$(BIN)/demo-service: $(wildcard Sources/demo-service/*.swift Sources/DemoGoogle/*.swift) Package.swift | moongate
	$(SWIFT_BUILD) --product demo-service
	touch $@

# Generates Documentation/reference/ and the editor types from the code.
reference: moongate $(BIN)/moongate-provider
	$(BIN)/moongate reference Documentation/reference
	$(BIN)/moongate policy types > config/editor/moongate.d.lua

build-tests: test-deps
	@$(SWIFT_BUILD) --build-tests

run: programs
	@bin=$$($(SWIFT_BUILD) --show-bin-path)
	set -m
	"$$bin/demo-service" --google-secret $(CONFIG)/data/google.secret & demo=$$!
	"$$bin/moongate" serve --config $(CONFIG) & gateway=$$!
	set +m
	finish() { trap - INT TERM EXIT; kill $$gateway $$demo 2>/dev/null || :; wait; }
	trap 'finish; exit 0' INT TERM
	trap finish EXIT
	for try in $$(seq 150); do
	  kill -0 $$gateway 2>/dev/null && kill -0 $$demo 2>/dev/null || { echo "Not started: see the line above." >&2; exit 1; }
	  curl -fs -o /dev/null http://127.0.0.1:9901/readyz && break
	  sleep 0.1
	done
	printf '%s\n' '' \
	  'The gateway        http://localhost:8080           open this: it leads to sign-in, then to the service' \
	  'The outbox         http://127.0.0.1:9901/outbox    the codes that would go out by SMS' \
	  'The demo service   http://127.0.0.1:3000           what the gateway protects, without it' '' \
	  '1. Open the gateway, choose "Create Account", and type a number such as 99999 99999.' \
	  '2. Read the code in the outbox, and type it.' \
	  '3. Change a number in config/policies/phone_otp.lua and see it hold at the next try.' '' \
	  'Ctrl-C ends it all.' ''
	wait -n $$gateway $$demo || :

# Two gateways with nginx in front and a throwaway PostgreSQL behind, by the files of Documentation/guides/several-gateways.md.
cluster: build
	@$(call need,postgresql nginx python3)
	MOONGATE_BIN=$$($(SWIFT_BUILD) --show-bin-path) exec python3 Tests/EndToEnd/cluster.py

# Keeps two cores busy. Tests start after the build, because those that wait for a gateway or a browser cost more
# processor time beside a compiler. Tests that measure time or memory run last. The output of each part is collected and
# printed when the part ends.
test: test-deps
	@said=$$(mktemp -d); trap 'rm -rf "$$said"' EXIT
	began=$$SECONDS
	[ -d $(BIN) ] || { mkdir -p .build; touch $(OPTIMIZED); }
	part() { if nice -n "$$1" $(MAKE) --no-print-directory $${@:2} >"$$said/log.$$2" 2>&1; then result=passed; else result=FAILED; touch "$$said/failed.$$2"; fi
	  printf '\n== %s: %s after %s s\n' "$${*:2}" "$$result" "$$((SECONDS - began))" | cat "$$said/log.$$2" -; }
	part 0 build-tests & part 5 lint & part 5 venv & part 10 fuzz-slice & wait
	if compgen -G "$$said/failed.*" >/dev/null; then echo "Nothing was tested." >&2; exit 1; fi
	part 0 end-to-end-beside & part 0 unit-test-beside BUILT=1 & wait
	part 0 unit-test-alone
	part 0 end-to-end-alone
	if compgen -G "$$said/failed.*" >/dev/null; then
	  for failed in "$$said"/failed.*; do printf '\nFAILED: %s\n' "$${failed##*/failed.}"; tail -n 40 "$$said/log.$${failed##*/failed.}"; done >&2
	  exit 1
	fi

# Takes less than two minutes after a build. Skips tests that kill stores and servers, repeat a suite in PostgreSQL, run
# all policies or broken providers, or need every page.
FAST_SKIPS = ^MoongateStoreTests.*(Survival|ConcurrentAttack|Outage|BrokenServer)|overThreeNodes|inPostgreSQL|agreesOnPostgreSQL|copyThereAndBack|postgresLooksUpByIndex|failsOnTheRightRule|proverAgrees|neverCrashesOrHangs|thoseThatAreNotBrokenPass|anyNumbers|guessesAgree|(Simulation|ShippedCases|ProtocolViolation|Supervision|ConformanceSubjectFile|WeakPIN)Tests|$(TIMED)
FAST_FILES := test_api test_forward test_signing_out test_limits
test-fast: lint-changed build-tests $(VENV)/ready
	@export MOONGATE_BIN=$(BIN)
	$(PYTEST) $(FAST_FILES:%=Tests/EndToEnd/%.py) -q -m "not alone and not timed" -n 2 --dist loadfile & pages=$$!
	$(MAKE) --no-print-directory unit-test-beside SKIPS='$(FAST_SKIPS)' BUILT=1
	wait $$pages

unit-test: unit-test-beside unit-test-alone

# These tests measure time and run alone.
TIMED := ^CLuaTests.*KillTests
SKIPS ?= $(TIMED)
SHARDS := ^MoongateStoreTests ^MoongateHTTPTests ^MoongatePolicyTests ^MoongateProxyTests
empty :=
sharded = $(subst $(empty) $(empty),|,$(SHARDS))

# Runs a process for each shard and one for all other tests: store tests wait for disks and databases, page tests read all
# languages, policy tests compute, and proxy tests wait for sockets. Each process runs one test at a time. Failures are
# listed again at the end.
unit-test-beside: $(if $(BUILT),,build-tests)
	@tests=$(BIN)/moongatePackageTests.xctest
	said=$$(mktemp -d); trap 'rm -rf "$$said"' EXIT
	run() { "$$tests" --testing-library swift-testing --no-parallel --skip '$(SKIPS)' "$${@:2}" >"$$said/$$1" 2>&1 || again "$$1" || echo "$$?" >"$$said/$$1.failed"; }
	# Failed tests run once more, alone, and are listed. Crashes and tests without a filterable name do not.
	again() {
	  grep -qE '^✘ Test run with .* failed' "$$said/$$1" && ! grep -qE '^✘ Test "' "$$said/$$1" || return 1
	  names=$$(sed -nE 's/^✘ Test ([A-Za-z0-9_]+)\(.*\) .*failed after.*/\1/p' "$$said/$$1" | sort -u); [ -n "$$names" ] || return 1
	  "$$tests" --testing-library swift-testing --no-parallel --filter "/($$(paste -sd'|' <<<"$$names"))\(" >"$$said/$$1.again" 2>&1 && grep -qE 'Test run with [1-9]' "$$said/$$1.again" || return 1
	  echo "$$names" >>"$$said/second"
	}
	for shard in $(SHARDS:^%=%); do run "$$shard" --filter "^$$shard" & done
	run others --skip '$(sharded)' & wait
	for shard in $(SHARDS:^%=%) others; do cat "$$said/$$shard"; done
	if compgen -G "$$said/*.failed" >/dev/null; then { printf '\nFailures:\n'; grep -hE '✘|error:|Fatal' "$$said"/*; exit 1; } >&2; fi
	if [ -f "$$said/second" ]; then { printf '\nPassed only at the second attempt. Fix these unreliable tests:\n'; cat "$$said/second"; } >&2; fi

unit-test-alone:
	@$(BIN)/moongatePackageTests.xctest --testing-library swift-testing --no-parallel --filter '$(TIMED)'

# Removes included providers one after the other from a copy of the sources and builds the rest: PLUGIN="PIN TOTP";
# default EmailCode. It takes minutes, so it is not part of `make test`. The copy keeps its build for further runs.
check-removal: deps
	@for plugin in $(or $(PLUGIN),EmailCode); do SWIFT_BUILD="$(SWIFT_BUILD)" python3 Tests/Removal/remove_provider.py "$$plugin" .build-e2e/removal || exit 1; done

# Follows Documentation/plugins/start.md as a reader does, in Swift too: builds packages outside the repository, and
# Moongate once more. Needs any build first.
check-guide: test-deps $(VENV)/ready
	@export MOONGATE_GUIDE=1 MOONGATE_NEW_PROVIDER=1 MOONGATE_BIN=$$($(SWIFT_BUILD) --show-bin-path)
	$(PYTEST) Tests/EndToEnd/test_guide.py Tests/EndToEnd/test_provider_new.py -q

# Tests the built programs. Most tests wait most of the time, so files run in parallel, the longest first. Tests that
# measure time or memory run afterwards, most of them waiting, five at a time.
WORKERS ?= 6
end-to-end: end-to-end-beside end-to-end-alone

# Failed tests run once more, alone, and are listed. pytest exits with 1 only if tests failed.
define pytest
export MOONGATE_BIN=$(BIN)
run() { $(PYTEST) Tests/EndToEnd -q "$$@"; }
again() { [ $$? = 1 ] && printf '\nOnce more, alone. A test that passes now is still unreliable and must be fixed:\n' && run -v --last-failed --last-failed-no-failures none; }
endef

end-to-end-beside: test-deps $(VENV)/ready
	@$(pytest)
	run -m "not alone and not timed" -n $(WORKERS) --dist loadfile --no-loadscope-reorder || again

end-to-end-alone: test-deps $(VENV)/ready
	@$(pytest)
	run -m alone -n 5 --dist loadfile --no-loadscope-reorder || again
	run -m timed || again

venv: $(VENV)/ready

$(VENV)/ready: Tests/EndToEnd/requirements.txt
	@$(call need,python3-venv)
	rm -rf $(VENV)
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install -q --disable-pip-version-check --no-compile -r Tests/EndToEnd/requirements.txt
	touch $@

# Takes pictures of all pages and states in .build-e2e/screenshots. Needs a build first.
screenshots: test-deps $(VENV)/ready
	@MOONGATE_BIN=$$($(SWIFT_BUILD) --show-bin-path) $(VENV)/bin/python Tests/EndToEnd/screenshots.py .build-e2e/screenshots

# The pictures in Documentation/images: needs any build first.
pictures: test-deps $(VENV)/ready
	@MOONGATE_BIN=$$($(SWIFT_BUILD) --show-bin-path) $(VENV)/bin/python Tests/EndToEnd/documentation_pictures.py

# Every test of a page in every look, where `make test` runs each in one of them: needs any build first.
looks: test-deps $(VENV)/ready
	@MOONGATE_BIN=$$($(SWIFT_BUILD) --show-bin-path) $(PYTEST) Tests/EndToEnd -q -k test_pages --looks all

# Tests that take too long for `make test` (half an hour): external suites (testssl, slowhttptest, h2load,
# schemathesis), request framing compared with h11 and llhttp with a random seed, a thousand reloads, and memory with slow
# readers. Needs a build first.
soak: test-deps $(VENV)/ready
	@$(call need,$(SOAK_PACKAGES))
	export MOONGATE_BIN=$$($(SWIFT_BUILD) --show-bin-path) MOONGATE_API_SECONDS=600 MOONGATE_API_EXAMPLES=500 MOONGATE_API_PHASES=examples,coverage,fuzzing,stateful
	export MOONGATE_FRAMING_SECONDS=300 MOONGATE_FRAMING_SEED=$$RANDOM
	$(PYTEST) Tests/EndToEnd/soak_wire.py Tests/EndToEnd/test_framing.py Tests/EndToEnd/test_description.py -v -rP --durations=0
	MOONGATE_RELOADS=1000 $(PYTEST) Tests/EndToEnd/test_reload.py -v -rP
	MOONGATE_ACCESS_ROUNDS=1000 $(PYTEST) Tests/EndToEnd/test_cluster_access.py -v -rP
	python3 Tests/Bench/slow_readers.py

# Fuzzes CLua with AddressSanitizer and UndefinedBehaviorSanitizer. LUA_SOURCE=…/lua-5.4.4/src instruments Lua itself;
# without it, the system's Lua is used, and only its heap is checked.
FUZZ_ROUNDS ?= 300000
FUZZ_SECONDS ?= 300
FUZZ_SEED ?= 1
LUA_SOURCE ?=
FUZZ_BIN := .build-fuzz/fuzz
FUZZ_LUA := $(filter-out %/lua.c %/luac.c %/onelua.c %/ltests.c,$(wildcard $(LUA_SOURCE)/*.c))

$(FUZZ_BIN): $(wildcard Sources/CLua/*/*.c Sources/CLua/*.h Sources/CLua/include/*.h) Tests/Fuzz/fuzz.c $(FUZZ_LUA)
	@mkdir -p $(@D)
	$(CC) -std=gnu17 -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all -ISources/CLua/include -o $@ \
	  Sources/CLua/*/*.c Tests/Fuzz/fuzz.c $(if $(FUZZ_LUA),$(FUZZ_LUA) -DLUA_USE_POSIX,-llua5.4) -lm

fuzz: deps $(FUZZ_BIN)
	@$(FUZZ_BIN) $(FUZZ_ROUNDS) $(FUZZ_SECONDS) $(FUZZ_SEED) Tests/Fuzz/corpus/*.lua

# Fuzzes the decoders of authenticator data (Plugins/Passkey) with AddressSanitizer.
fuzz-passkey: deps
	@mkdir -p .build-fuzz
	@swiftc -O -sanitize=address $(addprefix Plugins/Passkey/,CBOR.swift AuthenticatorData.swift) Sources/MoongateSDK/Base64URL.swift Tests/Fuzz/Passkey/main.swift -o .build-fuzz/passkey
	@.build-fuzz/passkey 1000000 $(FUZZ_SEED)

# Random frames on 100,000 HTTP/2 streams of clients, and as many of services, compared with what PyPI h2 reads; the
# end-to-end tests run a slice. Needs a build first.
fuzz-http2: test-deps $(VENV)/ready
	@export MOONGATE_BIN=$$($(SWIFT_BUILD) --show-bin-path) HTTP2_FUZZ_STREAMS=100000 HTTP2_FUZZ_SECONDS=$(or $(HTTP2_FUZZ_SECONDS),1800)
	HTTP2_FUZZ_SEED=$${HTTP2_FUZZ_SEED:-$$RANDOM} $(PYTEST) Tests/EndToEnd/test_http2_fuzz.py Tests/EndToEnd/test_routes_http2_fuzz.py -q -s -k random

# A million random paths on random routes, compared with an oracle; the unit tests run a slice. Needs a build of the tests
# first.
fuzz-paths:
	@MOONGATE_PATHS=$(or $(FUZZ_PATHS),1000000) MOONGATE_PATHS_SEED=$(FUZZ_SEED) $(BIN)/moongatePackageTests.xctest --testing-library swift-testing --filter PathConfusionTests

# The part of `fuzz` in `make test`.
fuzz-slice: deps $(FUZZ_BIN)
	@$(FUZZ_BIN) 20000 10 1 Tests/Fuzz/corpus/*.lua

bench-policy: deps
	@swift build -c release --product policy-bench
	$$(swift build -c release --show-bin-path)/policy-bench

bench-hash: deps
	@swift build -c release --product hash-bench
	$$(swift build -c release --show-bin-path)/hash-bench

bench-exec: deps
	@swift build -c release --product exec-bench
	$$(swift build -c release --show-bin-path)/exec-bench

# Compares the prover's results with an exhaustive execution, for ten thousand random configurations.
prove: deps
	@swift build -c release --product prove
	$$(swift build -c release --show-bin-path)/prove $(or $(CONFIGURATIONS),10000) $(or $(SEED),1)

bench: deps bench-policy bench-hash bench-exec
	@$(call need,$(BENCH_PACKAGES) curl python3-venv)
	swift build -c release
	MOONGATE_BIN=$$(swift build -c release --show-bin-path) python3 Tests/Bench/bench.py
	MOONGATE_BIN=$$(swift build -c release --show-bin-path) python3 Tests/Bench/http2.py
	MOONGATE_BIN=$$(swift build -c release --show-bin-path) python3 Tests/Bench/grpc.py
	MOONGATE_BIN=$$(swift build -c release --show-bin-path) python3 Tests/Bench/tokens.py
	MOONGATE_BIN=$$(swift build -c release --show-bin-path) python3 Tests/Bench/apps.py
	MOONGATE_BIN=$$(swift build -c release --show-bin-path) python3 Tests/Bench/signins.py
	MOONGATE_BIN=$$(swift build -c release --show-bin-path) python3 Tests/Bench/pages.py
	MOONGATE_BIN=$$(swift build -c release --show-bin-path) python3 Tests/Bench/memory.py
	MOONGATE_BIN=$$(swift build -c release --show-bin-path) python3 Tests/Bench/registrations.py
	MOONGATE_BIN=$$(swift build -c release --show-bin-path) python3 Tests/Bench/shadow.py
	MOONGATE_BIN=$$(swift build -c release --show-bin-path) python3 Tests/Bench/nodes.py

format:
	@swift format --in-place --parallel --recursive $(SWIFT_FILES)

lint:
	@swift format lint --strict --parallel --recursive $(SWIFT_FILES)

# Lints the files that differ from the last commit.
lint-changed:
	@files=$$(git diff --name-only --diff-filter=d HEAD -- '*.swift'; git ls-files --others --exclude-standard -- '*.swift')
	[ -z "$$files" ] || xargs swift format lint --strict --parallel <<<"$$files"

include Packaging/packages.mk

clean:
	@swift package clean
