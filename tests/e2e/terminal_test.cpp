// What a terminal sees, of any width: no line that wraps, no code that stays, and how far an evaluation is.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>

#include <algorithm>
#include <vector>

#include "base/text_layout.h"
#include "program.h"

namespace plimsoll::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Runs a command with stderr, and stdout where asked, on a terminal of so many columns; what comes out of
/// it.
std::string on_terminal(const Folder& folder, int columns, const std::string& environment,
                        const std::string& arguments, bool out_too = false, const std::string& typed = "") {
  int master = -1;
  winsize size = {};
  size.ws_row = 24;
  size.ws_col = static_cast<unsigned short>(columns);
  const pid_t child = ::forkpty(&master, nullptr, nullptr, &size);
  if (child == 0) {
    const std::string command = "cd '" + folder.path() + "' && unset COLUMNS; export TERM=xterm " +
                                environment + "; exec '" PLIMSOLL_BINARY "' " + on_device(arguments) +
                                (out_too ? "" : " >out.txt") + (typed.empty() ? " </dev/null" : "");
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  EXPECT_EQ(::write(master, typed.data(), typed.size()), static_cast<ssize_t>(typed.size()));
  std::string seen;
  char buffer[4096];
  for (ssize_t n; (n = ::read(master, buffer, sizeof(buffer))) > 0;)
    seen.append(buffer, static_cast<size_t>(n));
  ::close(master);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0) << seen;
  return seen;
}

/// The widest of what stood in one row at once.
int widest(const std::string& seen) {
  int most = 0;
  for (size_t begin = 0; begin < seen.size();) {
    const size_t end = std::min(seen.find_first_of("\r\n", begin), seen.size());
    most = std::max(most, columns_of(seen.substr(begin, end - begin)));
    begin = end + 1;
  }
  return most;
}

/// Carriage returns that begin no new line.
size_t lone_returns(const std::string& seen) {
  size_t count = 0;
  for (size_t i = 0; i < seen.size(); ++i)
    count += seen[i] == '\r' && seen.compare(i, 2, "\r\n") != 0 ? 1 : 0;
  return count;
}

class Terminal : public testing::Test {
 protected:
  Terminal() {
    folder_.write("train.txt", some_text(20'000));
    folder_.write("eval.txt", some_text(400'000));
    folder_.write("run.yaml",
                  run_file("training: {global_batch_size: 2, max_steps: 30, learning_rate: 1.0e-3, "
                           "warmup_steps: 40}\n"));
  }
  const Folder folder_;
};

TEST_F(Terminal, NoLineIsWiderThanIt) {
  for (const int columns : {40, 80, 200}) {
    const std::string seen =
        on_terminal(folder_, columns, "", "train run.yaml eval_strategy=no --resume never", /*out_too=*/true);
    EXPECT_LE(widest(seen), columns) << seen;
    EXPECT_THAT(seen, Not(HasSubstr("\x1b")));
    EXPECT_THAT(seen, HasSubstr("step 30/30  loss"));
    EXPECT_GT(lone_returns(seen), 0U) << "a line that rewrites itself";
    EXPECT_EQ(seen.find("peak ") != std::string::npos, true);
  }
  EXPECT_LT(widest(on_terminal(folder_, 200, "COLUMNS=40", "train run.yaml eval_strategy=no --resume never")),
            41);
}

TEST_F(Terminal, AWiderOneSaysMore) {
  const auto seen = [&](int columns) {
    return on_terminal(folder_, columns, "", "train run.yaml eval_strategy=no --resume never");
  };
  EXPECT_THAT(seen(40), Not(HasSubstr("norm")));
  EXPECT_THAT(seen(200), HasSubstr("norm"));
}

TEST_F(Terminal, ThatCannotRewriteGetsPlainLines) {
  for (const char* environment : {"TERM=dumb", "TERM="}) {
    const std::string seen =
        on_terminal(folder_, 80, environment, "train run.yaml eval_strategy=no --resume never");
    EXPECT_EQ(lone_returns(seen), 0U);
    EXPECT_THAT(seen, Not(HasSubstr("\x1b")));
    EXPECT_LE(widest(seen), 80);
    EXPECT_THAT(seen, HasSubstr("step 17/30"));
  }
  EXPECT_THAT(on_terminal(folder_, 80, "NO_COLOR=1", "train run.yaml eval_strategy=no --resume never"),
              Not(HasSubstr("\x1b")));
}

TEST_F(Terminal, WatchesARunByItsFolder) {
  ASSERT_EQ(folder_.run("train run.yaml eval_strategy=no --resume never").exit_code, 0);
  for (const int columns : {40, 80}) {
    const std::string seen = on_terminal(folder_, columns, "LC_ALL=C.UTF-8", "watch out", /*out_too=*/true);
    EXPECT_LE(widest(seen), columns) << seen;
    EXPECT_THAT(seen, HasSubstr("step 30/30"));
    EXPECT_THAT(seen, HasSubstr("ended after"));
    EXPECT_THAT(seen, Not(HasSubstr("\x1b")));
  }
  EXPECT_THAT(on_terminal(folder_, 80, "LC_ALL=C.UTF-8", "watch out", /*out_too=*/true), HasSubstr("▁"));
  EXPECT_THAT(on_terminal(folder_, 80, "LC_ALL=C", "watch out", /*out_too=*/true), Not(HasSubstr("▁")));
  const Outcome piped = folder_.run("watch out --once");
  EXPECT_EQ(piped.exit_code, 0);
  EXPECT_THAT(piped.out, HasSubstr("step 30/30  100%  loss "));
  // Without its last word the run was stopped: its process is gone.
  const std::string events = folder_.read("out/events.jsonl");
  folder_.write("out/events.jsonl", events.substr(0, events.find("{\"event\": \"summary\"")));
  EXPECT_EQ(folder_.run("watch out").exit_code, 75);
  EXPECT_EQ(folder_.run("watch nowhere").exit_code, 65);
}

TEST_F(Terminal, AFileGetsWholeLines) {
  const Outcome run = folder_.run("train run.yaml eval_strategy=no --resume never", "TERM=xterm COLUMNS=40");
  EXPECT_THAT(run.err, Not(HasSubstr("\r")));
  EXPECT_THAT(run.err, Not(HasSubstr("\x1b")));
  const size_t at = run.err.find("step 17/30  loss ");
  const std::string line = run.err.substr(at, run.err.find('\n', at) - at);
  for (const char* part : {"  norm ", "  lr ", " tok/s  ETA ", "  peak "}) EXPECT_THAT(line, HasSubstr(part));
}

TEST_F(Terminal, AnEvaluationShowsHowFarItIs) {
  for (const char* command : {"eval run.yaml", "train run.yaml max_steps=1 --resume never"}) {
    const std::string seen = on_terminal(folder_, 80, "", command);
    EXPECT_THAT(seen, testing::ContainsRegex("eval +[0-9]+%  [0-9]+ of 1334 examples  .* left")) << command;
    EXPECT_LE(widest(seen), 80);
  }
}

TEST_F(Terminal, WhatWasTypedAheadStandsBehindItsPrompt) {
  folder_.write("t.jinja", "{% for m in messages %}{{ m.content }}\n{% endfor %}");
  const std::string chat =
      "generate --model out --chat --chat-template t.jinja --max-new-tokens 3 --context 200";
  ASSERT_EQ(folder_.run("train run.yaml max_steps=1 eval_strategy=no --resume never").exit_code, 0);
  const std::string seen = on_terminal(folder_, 80, "", chat, /*out_too=*/false, "to her line\n/exit\n");
  EXPECT_THAT(seen, HasSubstr("\n> to her line\r\n"));
  EXPECT_THAT(seen, HasSubstr("> /exit\r\n3 new tokens in"));
}

}  // namespace
}  // namespace plimsoll::e2e
