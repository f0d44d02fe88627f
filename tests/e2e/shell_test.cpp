// Completion as a shell does it, and manual pages as man reads them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program.h"

namespace plimsoll::e2e {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// What bash offers for the last of `words`.
std::string completed(const Folder& folder, const std::string& words) {
  const std::string script =
      "cd '" + folder.path() + "' && bash -c 'compopt() { :; }; source completion; COMP_WORDS=(plimsoll " +
      words + "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _plimsoll; echo \" ${COMPREPLY[*]} \"' >found.txt";
  EXPECT_EQ(std::system(script.c_str()), 0) << words;
  return folder.read("found.txt");
}

TEST(Completion, KnowsCommandsOptionsWordsFilesAndSettings) {
  const Folder folder;
  const Outcome outcome = folder.run("completion bash");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  folder.write("completion", outcome.out);
  folder.write("run.yaml", "");
  EXPECT_EQ(completed(folder, "tr"), " train \n");
  EXPECT_THAT(completed(folder, "data tok"), AllOf(HasSubstr(" tokenize "), HasSubstr(" tokenizer ")));
  EXPECT_THAT(completed(folder, "train --re"), AllOf(HasSubstr(" --resume "), Not(HasSubstr("--json"))));
  EXPECT_EQ(completed(folder, "train run.yaml --resume n"), " never \n");
  EXPECT_THAT(completed(folder, "plan run"), AllOf(HasSubstr(" run.yaml "), HasSubstr(" runtime.threads= ")));
  EXPECT_EQ(completed(folder, "plan run.yaml memory.bud"), " memory.budget= \n");
  EXPECT_EQ(completed(folder, "export --format g"), " gguf \n");
  EXPECT_EQ(folder.run("completion fish").exit_code, 2);
}

TEST(Completion, OfZshNamesEveryCommand) {
  const Folder folder;
  const Outcome outcome = folder.run("completion zsh");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              AllOf(testing::StartsWith("#compdef plimsoll\n"), HasSubstr("_plimsoll_data_inspect() {"),
                    HasSubstr("'memory.budget=:"), HasSubstr("'train:")));
}

/// Types into an interactive zsh on a terminal of its own, "line|what a tab makes of it" each; says what
/// never came.
constexpr const char* kZshDriver = R"(
zmodload zsh/zpty || exit 3
zpty shell zsh -f -i
zpty -w shell "PS1=; fpath=($PWD \$fpath); autoload -Uz compinit; compinit -u -d ./dump; unsetopt beep; stty cols 200"
zpty -w shell "echo rea''dy"
zpty -r -m shell seen '*ready*'
for pair in "${(@f)$(<lines)}"; do
  zpty -w -n shell "${pair%%|*}"$'\t'
  for i in {1..100}; do
    zpty -r -t shell part && seen+=$part
    [[ $seen == *"${pair##*|}"* ]] && break
    sleep 0.05
  done
  [[ $seen == *"${pair##*|}"* ]] || print -r -- "never came: ${pair}"
  zpty -w -n shell $'\025'
  zpty -w shell "echo agai''n"
  zpty -r -m shell seen '*again*'
  seen=''
done
zpty -d shell
)";

TEST(Completion, OfZshCompletesInZsh) {
  if (std::system("command -v zsh >/dev/null") != 0) GTEST_SKIP() << "zsh is not installed";
  const Folder folder;
  folder.write("_plimsoll", folder.run("completion zsh").out);
  folder.write("drive.zsh", kZshDriver);
  folder.write("chats.jsonl", "");
  folder.write("lines",
               "plimsoll tr|train\n"
               "plimsoll data |tokenizer\n"
               "plimsoll train --res|--resume\n"
               "plimsoll train run.yaml --resume n|never\n"
               "plimsoll export --format |gguf\n"
               "plimsoll generate --dtype |bf16\n"
               "plimsoll completion z|zsh\n"
               "plimsoll predict --data ch|chats.jsonl\n"
               "plimsoll plan run.yaml memory.bud|memory.budget=\n"
               "plimsoll plan run.yaml data.train=ch|data.train=chats.jsonl\n");
  const std::string command =
      "cd '" + folder.path() + "' && TERM=xterm timeout 60 zsh -f drive.zsh >found.txt 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(folder.read("found.txt"), "");
}

TEST(Manual, HasAPageForEachCommandAndOneForRunFiles) {
  const Folder folder;
  ASSERT_EQ(folder.run("manual pages").exit_code, 0);
  for (const char* page : {"plimsoll.1", "plimsoll-train.1", "plimsoll-data-inspect.1", "plimsoll-run.5"}) {
    const std::string text = folder.read(std::string("pages/") + page);
    EXPECT_THAT(text, AllOf(testing::StartsWith(".TH PLIMSOLL"), HasSubstr(".SH NAME\n"))) << page;
    EXPECT_THAT(text, Not(HasSubstr("\n'"))) << "a request that is none";
  }
  EXPECT_THAT(folder.read("pages/plimsoll-train.1"),
              AllOf(HasSubstr("\\fB\\-\\-resume\\fR"), HasSubstr(".SH EXAMPLES")));
  EXPECT_THAT(folder.read("pages/plimsoll-run.5"), HasSubstr(".TP\n\\fBtraining.learning_rate\\fR\n"));
}

}  // namespace
}  // namespace plimsoll::e2e
