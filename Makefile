# The entry points; `make help` lists them. CMake does the building (CMakePresets.json).

JOBS ?= $(shell nproc)
# Modules whose tests run several threads at once; they are what the thread sanitizer looks at.
THREADED := runtime backends/cpu backends/discrete datasets corpora tokenizers training
empty :=
space := $(empty) $(empty)
# Of what a sanitizer or a fuzzer looks at, one part in so many, and what changed (tools/sampling.py).
PARTS ?= 1
# And of what changed at most so many modules, where a landing changes nearly all of them.
MOST ?=
SAMPLED_MODULES = $(shell tools/sampling.py --modules --parts $(PARTS) $(if $(MOST),--most $(MOST)))
THREADED_MODULES = $(filter $(subst /,_,$(THREADED)),$(SAMPLED_MODULES))
# Plans are made by one thread, and slowly beside this sanitizer.
ONE_THREADED := Remedies.*:Sweep*:Frontier*:KnownWays*:Card*:Choose*:*EachInstructionSet*:SplitChoices.*:Verdict.*
# Each makes hundreds of plans, or trains for hundreds of steps, one like the other: minutes beside a sanitizer,
# which has seen one of them.
MANY_ALIKE := *IsNoSlower*:*EachPoint*:*LeaveEvery*:*IsNeverBehind*:LossScaleTest.WithoutAScale*:*EachInstructionSet*/portable:*EachInstructionSet*/avx512*:*EachInstructionSet*/amx
# Names of tests, for ctest -R.
one_of = ^($(subst $(space),|,$(strip $(1))))$$

.DEFAULT_GOAL := build
.PHONY: build library columns install deb wheel sdist deps all test campaign demo bench interop isas fuzz sanitize asan tsan format format-check includes tools-test lint clean help

build: deps build/build.ninja ## install what is missing, build build/plimsoll and build/libplimsoll.so.0 (the default)
	cmake --build build -j $(JOBS) --target plimsoll library

# With DESTDIR it is staged for a package.
PREFIX ?= /usr/local
install: build ## program, library, headers, manual pages, completion and examples under PREFIX (/usr/local)
	cmake --install build --prefix $(PREFIX) --strip

deb: build ## build/*.deb for Debian 12: program, library, headers, Python package
ifneq ($(DEPS),0)
	@PLIMSOLL_PACKAGES=tools/deb-packages.txt tools/install-deps
endif
	tools/package-deb

wheel: build ## build/wheel/*.whl: the Python package with library and program, for Linux with glibc 2.34
	cmake --build build -j $(JOBS) --target wheel_program
	tools/package-wheel
	python3 tests/library/wheel_test.py build

sdist: ## build/sdist/plimsoll-*.tar.gz: the source distribution, which pip compiles on Debian 12
	tools/package-sdist

# DEPS=0 skips the look at the installed packages.
deps:
ifneq ($(DEPS),0)
	@tools/install-deps
endif

# JOIN=OFF compiles file by file, which is quicker where only some change.
JOIN ?= ON
build/build.ninja: | deps
	cmake --preset release -DPLIMSOLL_JOIN_SOURCES=$(JOIN)

build-%/build.ninja: | deps
	cmake --preset $*

all: deps build/build.ninja
	cmake --build build -j $(JOBS)

library: deps build/build.ninja ## build/libplimsoll.so.0, the library of C, C++ and Python
	cmake --build build -j $(JOBS) --target library

columns: ## add what reads .parquet and .arrow files (Arrow from PyPI, makes .venv-columns)
	tools/columns-env >/dev/null && cmake --preset release && $(MAKE) build

test: all tools-test ## build everything, run every test, end to end included
	ctest --test-dir build --output-on-failure -j $(JOBS)

# What `make test` takes a sample of: tests with the label campaign read the variable. BUILD=build-asan: sanitized.
BUILD ?= build
campaign: $(if $(filter build,$(BUILD)),all) ## all that tests take a sample of: each fault at each call, hundreds of kills, instruction sets (hours; BUILD=build-asan)
	PLIMSOLL_WHOLE_CAMPAIGN=1 ctest --test-dir $(BUILD) --output-on-failure --timeout 100000 -j $(JOBS) -L campaign
	$(if $(filter build,$(BUILD)),python3 tests/each_isa.py --shards 1)
	$(if $(filter build,$(BUILD)),tools/campaign)

tools-test:
	cd tests/tools && python3 -B -m unittest checks_test tools_test

demo: build ## train a small model on this machine's own text for about a minute
	tools/demo

bench: build ## PyTorch and Plimsoll in turn, fp32 and bf16, written to bench/results (BENCH_ARGS="--only W1 --rounds 3")
	bench/run $(BENCH_ARGS)
	bench/run --precision bf16 $(BENCH_ARGS)

INTEROP_ARGS ?= --all
interop: build ## training, evaluation, generation and tokenizers against transformers (makes .venv-bench)
	@PLIMSOLL_UNPINNED=1 PLIMSOLL_PACKAGES=tools/interop-packages.txt tools/install-deps || echo "interop: without a browser"
	"$$(tools/python-env)" tests/interop/run_all.py --build build $(INTEROP_ARGS)

FUZZ_SECONDS ?= 30
# One part of the tests in this many for each instruction set; the commit's name chooses which (tests/each_isa.py).
ISA_SHARDS ?= 24
isas: all ## a part of the tests under each instruction set of this machine (ISA_SHARDS=1: all of them)
	python3 tests/each_isa.py --shards $(ISA_SHARDS)

fuzz: deps ## fuzz the parsers for FUZZ_SECONDS each
	fuzz/run.sh $(FUZZ_SECONDS) $(PARTS)

sanitize: asan tsan ## the tests with address + undefined behaviour, the threaded ones with threads

asan: deps build-asan/build.ninja
	cmake --build build-asan -j $(JOBS) --target plimsoll plimsoll_faults $(addprefix test_,$(SAMPLED_MODULES))
	GTEST_FILTER='-$(MANY_ALIKE)' UBSAN_OPTIONS=print_stacktrace=1 \
	  ctest --test-dir build-asan --output-on-failure -j $(JOBS) -R '$(call one_of,$(SAMPLED_MODULES) faults_.* $(if $(filter backends_discrete,$(SAMPLED_MODULES)),card_contract))'

# GCC 12's thread sanitizer cannot map its shadow where the kernel randomises addresses too widely.
FIXED_ADDRESSES := $(shell setarch -R true 2>/dev/null && echo setarch -R)
tsan: deps build-tsan/build.ninja
	cmake --build build-tsan -j $(JOBS) --target $(addprefix test_,$(THREADED_MODULES))
	GTEST_FILTER='-$(ONE_THREADED):$(MANY_ALIKE)' TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1 \
	  $(FIXED_ADDRESSES) ctest --test-dir build-tsan --output-on-failure -j $(JOBS) -R '$(call one_of,$(THREADED_MODULES))'

format: ## clang-format every source
	tools/format

format-check:
	tools/format --check

includes:
	tools/check_includes
	tools/check_tests
	tools/check_words

lint: deps ## clang, clang-tidy and g++'s warnings of data flow on what changed since main (ALL=1: on everything)
	tools/check_clang --tidy $(if $(ALL),--tests,--changed)
	tools/check_gcc $(if $(ALL),,--most 40)

clean: ## remove the build folders; .venv-bench, runs/ and demo/ stay
	rm -rf build build-*/

help:
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
