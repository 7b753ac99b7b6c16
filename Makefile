# make run         builds and starts the gateway, a demo service behind it and its outbox
# make test        everything that has to hold, on a clean clone in one command
# make test-fast   while you work: style of what you changed, unit tests, a few end-to-end tests
#
# The debug build serves both: it is there in a few minutes on two cores and is built once. `make run CONFIGURATION=release`
# takes about twice as long to build and is what to measure.
SHELL := /bin/bash
.ONESHELL:
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: prove cluster check-guide check-removal bench-hash bench-policy bench-exec fuzz fuzz-passkey fuzz-slice help deps test-deps build moongate programs build-tests run test venv \
  test-fast soak reference unit-test unit-test-beside unit-test-alone end-to-end end-to-end-beside end-to-end-alone bench format lint lint-changed clean screenshots pictures looks

CONFIGURATION ?= debug
CONFIG ?= config
# Of a debug build: `make build DEBUG_INFO=dwarf` is for a debugger, and builds everything again.
DEBUG_INFO ?= none
# A debug build compiles a module at once, not file by file, since each file's compiler would read what the module's other files declare; it says what
# the module declares in the same run, not in one of its own; and it keeps nothing for debuggers.
DEBUG_FLAGS := -debug-info-format $(DEBUG_INFO) -Xswiftc -wmo -Xswiftc -num-threads -Xswiftc 2 -Xswiftc -no-emit-module-separately-wmo
# The check of who may import whom is part of every build, so that one build is shared by all targets.
SWIFT_BUILD := swift build -c $(CONFIGURATION) --explicit-target-dependency-import-check error $(if $(filter debug,$(CONFIGURATION)),$(DEBUG_FLAGS))
SWIFT_FILES := Sources Plugins Tests Package.swift

BUILD_PACKAGES := liblua5.4-dev libsqlite3-dev libphonenumber-dev libargon2-dev libcrypt-dev libcurl4-openssl-dev libqrencode-dev libpq-dev libssl-dev zlib1g-dev
TEST_PACKAGES := curl openssl chromium chromium-headless-shell chromium-driver fonts-lohit-deva fonts-noto-core zbar-tools python3-venv nginx haproxy postgresql faketime iproute2 nghttp2-client nodejs golang-go git cadaver rclone prometheus php-cli
SOAK_PACKAGES := testssl.sh slowhttptest nghttp2-client
BENCH_PACKAGES := wrk nginx postgresql
VENV := .build-e2e/venv
# Plugins that tests use as programs only would take seconds of each worker's start, and so would compiling tests again each time.
PYTEST := PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(CURDIR)/.build-e2e/bytecode $(VENV)/bin/python -m pytest -p no:schemathesis -p no:hypothesispytest -p no:anyio
# Where a build puts the programs. Asking SwiftPM would wait for any build that is going on.
BIN := $(CURDIR)/.build/$(CONFIGURATION)

# $(call need,PACKAGES): installs what is missing of them, or prints the one command that does.
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
	@echo "Building (the first time three to five minutes on two cores)"
	$(SWIFT_BUILD)

# What runs, without the benches and what tests need.
programs: moongate $(BIN)/demo-service

moongate: deps
	@echo "Building (the first time about three minutes on two cores)"
	$(SWIFT_BUILD) --product moongate

# Planning a build takes eight seconds of the processor's time, so this one is left out where nothing of the demo is new.
$(BIN)/demo-service: $(wildcard Sources/demo-service/*.swift) Package.swift | moongate
	$(SWIFT_BUILD) --product demo-service
	touch $@

# The pages of Documentation/reference/ and the editors' types, written anew from the code.
reference: moongate
	$(BIN)/moongate reference Documentation/reference
	$(BIN)/moongate policy types > config/editor/moongate.d.lua

build-tests: test-deps
	@$(SWIFT_BUILD) --build-tests

run: programs
	@bin=$$($(SWIFT_BUILD) --show-bin-path)
	set -m
	"$$bin/demo-service" & demo=$$!
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

# Two gateways with nginx in front and a throwaway PostgreSQL behind, by the files of config/README.md ("Several gateways, one store").
cluster: build
	@$(call need,postgresql nginx python3)
	MOONGATE_BIN=$$($(SWIFT_BUILD) --show-bin-path) exec python3 Tests/EndToEnd/cluster.py

# Two cores have enough to do all the time: what needs no build goes on beside it, and the end-to-end tests begin as soon as the programs are there,
# while the unit tests are still compiled at a lower priority. What measures time or memory comes last, with nothing beside it. What the parts say is
# kept apart, and is printed as each ends.
test: test-deps
	@said=$$(mktemp -d); trap 'rm -rf "$$said"' EXIT
	began=$$SECONDS
	part() { if nice -n "$$1" $(MAKE) --no-print-directory $${@:2} >"$$said/log.$$2" 2>&1; then result=passed; else result=FAILED; touch "$$said/failed.$$2"; fi
	  printf '\n== %s: %s after %s s\n' "$${*:2}" "$$result" "$$((SECONDS - began))" | cat "$$said/log.$$2" -; }
	part 5 lint & part 5 venv & first=$$!
	part 0 programs
	wait $$first
	if compgen -G "$$said/failed.*" >/dev/null; then wait; echo "Nothing was tested." >&2; exit 1; fi
	part 0 end-to-end-beside & part 10 unit-test-beside & part 10 fuzz-slice & wait
	part 0 unit-test-alone
	part 0 end-to-end-alone
	if compgen -G "$$said/failed.*" >/dev/null; then
	  for failed in "$$said"/failed.*; do printf '\nFAILED: %s\n' "$${failed##*/failed.}"; tail -n 40 "$$said/log.$${failed##*/failed.}"; done >&2
	  exit 1
	fi

# Less than two minutes where everything was built before: leaves out what kills stores and servers, plays all policies, or needs every page.
FAST_SKIPS := ^MoongateStoreTests.*(Survival|Siege|Outage)|proverAgrees|$(TIMED)
FAST_FILES := test_api test_forward test_signing_out test_limits
test-fast: lint-changed build-tests $(VENV)/ready
	@export MOONGATE_BIN=$(BIN)
	$(PYTEST) $(FAST_FILES:%=Tests/EndToEnd/%.py) -q -m "not alone" -n 2 --dist loadfile & pages=$$!
	$(MAKE) --no-print-directory unit-test-beside SKIPS='$(FAST_SKIPS)' BUILT=1
	wait $$pages

unit-test: unit-test-beside unit-test-alone

# Whatever these suites measure needs a processor of their own.
TIMED := ^CLuaTests.*KillTests
SKIPS ?= $(TIMED)
SHARDS := ^MoongateStoreTests ^MoongateHTTPTests
empty :=
both = $(subst $(empty) $(empty),|,$(SHARDS))

# Store tests wait for disks and databases, and those of pages read all languages: each of them runs beside all others, and in each of these three
# processes one test runs at a time. Of thousands of lines those that tell what failed are said once more, at the end.
unit-test-beside: $(if $(BUILT),,build-tests)
	@tests=$(BIN)/moongatePackageTests.xctest
	said=$$(mktemp -d); trap 'rm -rf "$$said"' EXIT
	run() { "$$tests" --testing-library swift-testing --no-parallel --skip '$(SKIPS)' "$${@:2}" >"$$said/$$1" 2>&1 || again "$$1" || echo "$$?" >"$$said/$$1.failed"; }
	# A test that fails beside others on a busy machine gets one more try by itself, and is named. What crashes, or has no name to filter by, gets none.
	again() {
	  grep -qE '^✘ Test run with .* failed' "$$said/$$1" && ! grep -qE '^✘ Test "' "$$said/$$1" || return 1
	  names=$$(sed -nE 's/^✘ Test ([A-Za-z0-9_]+)\(.*\) .*failed after.*/\1/p' "$$said/$$1" | sort -u); [ -n "$$names" ] || return 1
	  "$$tests" --testing-library swift-testing --no-parallel --filter "/($$(paste -sd'|' <<<"$$names"))\(" >"$$said/$$1.again" 2>&1 && grep -qE 'Test run with [1-9]' "$$said/$$1.again" || return 1
	  echo "$$names" >>"$$said/second"
	}
	run stores --filter '^MoongateStoreTests' & run pages --filter '^MoongateHTTPTests' & run others --skip '$(both)' & wait
	cat "$$said/stores" "$$said/pages" "$$said/others"
	if compgen -G "$$said/*.failed" >/dev/null; then { printf '\nWhat failed:\n'; grep -hE '✘|error:|Fatal' "$$said"/*; exit 1; } >&2; fi
	if [ -f "$$said/second" ]; then { printf '\nPassed at the second try only, which is a defect of the test:\n'; cat "$$said/second"; } >&2; fi

unit-test-alone:
	@$(BIN)/moongatePackageTests.xctest --testing-library swift-testing --no-parallel --filter '$(TIMED)'

# Takes shipped providers, one after the other, out of a copy of the sources and builds the rest: PLUGIN="PIN TOTP", EmailCode unless said otherwise. Minutes,
# so it is no part of `make test`; the copy keeps its build, so each one after the first costs little.
check-removal: deps
	@for plugin in $(or $(PLUGIN),EmailCode); do SWIFT_BUILD="$(SWIFT_BUILD)" python3 Tests/Removal/remove_provider.py "$$plugin" .build-e2e/removal || exit 1; done

# Follows Documentation/plugins/start.md as a reader does, in Swift too: builds packages outside the repository, and
# Moongate once more. Needs any build first.
check-guide: test-deps $(VENV)/ready
	@export MOONGATE_GUIDE=1 MOONGATE_NEW_PROVIDER=1 MOONGATE_BIN=$$($(SWIFT_BUILD) --show-bin-path)
	$(PYTEST) Tests/EndToEnd/test_guide.py Tests/EndToEnd/test_provider_new.py -q

# Drives the built programs, which any build makes. Most of the tests wait most of the time, so files run side by side, those that take longest first;
# what measures time or memory runs alone behind them.
WORKERS ?= 6
end-to-end: end-to-end-beside end-to-end-alone

# What fails beside others on a busy machine gets one more try by itself, and is named: pytest leaves with 1 where tests failed, and only then.
define pytest
export MOONGATE_BIN=$(BIN)
run() { $(PYTEST) Tests/EndToEnd -q "$$@"; }
again() { [ $$? = 1 ] && printf '\nOnce more, alone. What passes now is a defect of the test all the same:\n' && run -v --last-failed --last-failed-no-failures none; }
endef

end-to-end-beside: test-deps $(VENV)/ready
	@$(pytest)
	run -m "not alone" -n $(WORKERS) --dist loadfile --no-loadscope-reorder || again

end-to-end-alone: test-deps $(VENV)/ready
	@$(pytest)
	run -m alone || again

venv: $(VENV)/ready

$(VENV)/ready: Tests/EndToEnd/requirements.txt
	@$(call need,python3-venv)
	rm -rf $(VENV)
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install -q --disable-pip-version-check -r Tests/EndToEnd/requirements.txt
	touch $@

# Every page and state as pictures, in .build-e2e/screenshots: needs any build first.
screenshots: test-deps $(VENV)/ready
	@MOONGATE_BIN=$$($(SWIFT_BUILD) --show-bin-path) $(VENV)/bin/python Tests/EndToEnd/screenshots.py .build-e2e/screenshots

# The pictures in Documentation/images: needs any build first.
pictures: test-deps $(VENV)/ready
	@MOONGATE_BIN=$$($(SWIFT_BUILD) --show-bin-path) $(VENV)/bin/python Tests/EndToEnd/documentation_pictures.py

# Every test of a page in every look, where `make test` runs each in one of them: needs any build first.
looks: test-deps $(VENV)/ready
	@MOONGATE_BIN=$$($(SWIFT_BUILD) --show-bin-path) $(PYTEST) Tests/EndToEnd -q -k test_pages --looks all

# What takes too long for `make test`, half an hour: outside suites (testssl, slowhttptest, h2load, schemathesis), request framing beside h11 and
# llhttp with other dice every time, and memory under slow readers. Needs any build first.
soak: test-deps $(VENV)/ready
	@$(call need,$(SOAK_PACKAGES))
	export MOONGATE_BIN=$$($(SWIFT_BUILD) --show-bin-path) MOONGATE_API_SECONDS=600 MOONGATE_API_EXAMPLES=500 MOONGATE_API_PHASES=examples,coverage,fuzzing,stateful
	export MOONGATE_FRAMING_SECONDS=300 MOONGATE_FRAMING_SEED=$$RANDOM
	$(PYTEST) Tests/EndToEnd/soak_wire.py Tests/EndToEnd/test_framing.py Tests/EndToEnd/test_description.py -v -rP --durations=0
	MOONGATE_ACCESS_ROUNDS=1000 $(PYTEST) Tests/EndToEnd/test_cluster_access.py -v -rP
	python3 Tests/Bench/slow_readers.py

# CLua under AddressSanitizer and UndefinedBehaviorSanitizer. LUA_SOURCE=…/lua-5.4.4/src has Lua itself built so too; without
# it Lua is the system's, and its heap is still watched.
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

# The readers of what authenticators say (Plugins/Passkey), under AddressSanitizer.
fuzz-passkey: deps
	@mkdir -p .build-fuzz
	@swiftc -O -sanitize=address $(addprefix Plugins/Passkey/,CBOR.swift AuthenticatorData.swift) Sources/MoongateSDK/Base64URL.swift Tests/Fuzz/Passkey/main.swift -o .build-fuzz/passkey
	@.build-fuzz/passkey 1000000 $(FUZZ_SEED)

# What `make test` runs of it.
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

# Ten thousand random configurations: what the prover says of each is what happens when it is played to every end.
prove: deps
	@swift build -c release --product prove
	$$(swift build -c release --show-bin-path)/prove $(or $(CONFIGURATIONS),10000) $(or $(SEED),1)

bench: deps bench-policy bench-hash bench-exec
	@$(call need,$(BENCH_PACKAGES) curl python3-venv)
	swift build -c release
	MOONGATE_BIN=$$(swift build -c release --show-bin-path) python3 Tests/Bench/bench.py
	MOONGATE_BIN=$$(swift build -c release --show-bin-path) python3 Tests/Bench/tokens.py
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

# Of what differs from the last commit.
lint-changed:
	@files=$$(git diff --name-only --diff-filter=d HEAD -- '*.swift'; git ls-files --others --exclude-standard -- '*.swift')
	[ -z "$$files" ] || xargs swift format lint --strict --parallel <<<"$$files"

include Packaging/packages.mk

clean:
	@swift package clean
