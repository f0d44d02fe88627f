// What the labels of a data set are, and examples that do not have them.
#include "corpora/labelled/resolve_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "labelled_files.h"

namespace plimsoll::corpora {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using enum io::ProblemType;

Result<io::Labels> resolve(const std::vector<std::string>& labels, const LabelRequest& request = {}) {
  const io::TemporaryFolder folder;
  const LabelFile file = labels_of(folder, labels);
  const LabelFile* files[] = {&file};
  const auto summary = summarize_labels(files);
  EXPECT_TRUE(summary);
  // The same of lines that nobody has tokenized.
  const auto scanned = scan_labels(std::vector{folder.path("x.jsonl")}, {}, OnError::kFail);
  EXPECT_TRUE(scanned);
  const auto result = resolve_labels(request, *summary), early = resolve_labels(request, *scanned);
  EXPECT_EQ(result.ok(), early.ok());
  if (result && early) {
    EXPECT_EQ(*result, *early);
  }
  return result;
}

io::Labels found(const std::vector<std::string>& labels, const LabelRequest& request = {}) {
  const auto result = resolve(labels, request);
  EXPECT_TRUE(result) << result.error().message();
  return result ? *result : io::Labels{};
}

TEST(ResolveLabels, FindsThemInTheData) {
  EXPECT_EQ(found({"\"pos\"", "\"neg\"", "\"neu\"", "\"neg\""}),
            (io::Labels{kSingleLabel, {"neg", "neu", "pos"}}));
  EXPECT_EQ(found({"2", "0", "1"}), (io::Labels{kSingleLabel, io::default_label_names(3)}));
  EXPECT_EQ(found({"2", "0.5"}), (io::Labels{kRegression, {"LABEL_0"}}));
  EXPECT_EQ(found({"1.0", "0.0"}), (io::Labels{kRegression, {"LABEL_0"}}));
  EXPECT_EQ(found({"[0, 1]", "[1.0, 1]"}), (io::Labels{kMultiLabel, io::default_label_names(2)}));
  EXPECT_EQ(found({"[0, 1]", "[0.5, 1]"}), (io::Labels{kRegression, io::default_label_names(2)}));
}

TEST(ResolveLabels, SettingsGoBeforeTheConfigAndThatBeforeTheData) {
  const io::LabelFields config{{"no", "yes"}, kMultiLabel};
  EXPECT_EQ(found({"0", "1"}, {.config = config}), (io::Labels{kMultiLabel, {"no", "yes"}}));
  EXPECT_EQ(found({"0", "1"}, {.config = config, .problem = kSingleLabel}),
            (io::Labels{kSingleLabel, {"no", "yes"}}));
  EXPECT_EQ(found({"0", "1"}, {.config = config, .names = {"a", "b", "c"}}).names,
            (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(found({"0", "1"}, {.num_labels = 4}), (io::Labels{kSingleLabel, io::default_label_names(4)}));
  EXPECT_EQ(found({"0", "1"}, {.num_labels = 1}).problem, kRegression) << "as transformers has it";
  // A causal model whose config only carries transformers' default names says nothing.
  const io::LabelFields plain{io::default_label_names(2), {}};
  EXPECT_EQ(found({"\"x\"", "\"y\"", "\"z\""}, {.config = plain}).names,
            (std::vector<std::string>{"x", "y", "z"}));
}

TEST(ResolveLabels, AWholeModelsLabelsAreBinding) {
  const io::LabelFields three{io::default_label_names(3), {}};
  EXPECT_EQ(found({"0", "1"}, {.config = three, .whole = true}),
            (io::Labels{kSingleLabel, io::default_label_names(3)}));
  EXPECT_EQ(found({"0", "1"}, {.config = three, .whole = true, .names = {"a", "b", "c"}}).names[2], "c");
  const io::LabelFields one{io::default_label_names(1), {}};
  EXPECT_EQ(found({"0", "1"}, {.config = one, .whole = true}).problem, kRegression);
  for (const LabelRequest& request : {LabelRequest{.config = three, .whole = true, .num_labels = 2},
                                      LabelRequest{.config = three, .whole = true, .names = {"a", "b"}},
                                      LabelRequest{.num_labels = 2, .names = {"a"}}}) {
    const auto result = resolve({"0", "1"}, request);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(ResolveLabels, WithoutDataAsFarAsItGoes) {
  const auto early = [](const LabelRequest& request) { return *labels_without_data(request); };
  EXPECT_FALSE(early({}).certain);
  EXPECT_EQ(early({}).labels, (io::Labels{kSingleLabel, io::default_label_names(2)}));
  EXPECT_FALSE(early({.num_labels = 4}).certain) << "names may stand in the data";
  EXPECT_EQ(early({.num_labels = 4}).labels.count(), 4);
  EXPECT_EQ(early({.problem = kRegression}).labels.count(), 1);
  const EarlyLabels named = early({.problem = kMultiLabel, .names = {"a", "b"}});
  EXPECT_TRUE(named.certain);
  EXPECT_EQ(named.labels, (io::Labels{kMultiLabel, {"a", "b"}}));
  EXPECT_TRUE(early({.config = {io::default_label_names(3), kSingleLabel}, .whole = true}).certain);
  EXPECT_FALSE(early({.config = {io::default_label_names(3), {}}, .whole = true}).certain);
}

TEST(ResolveLabels, RefusesWhatLeavesNothingToLearn) {
  EXPECT_THAT(resolve({"0", "0"}).error().message(), HasSubstr("all examples have one label"));
  EXPECT_THAT(resolve({"\"a\"", "\"b\""}, {.num_labels = 3}).error().message(),
              HasSubstr("the examples have 2 labels (a, b), num_labels is 3"));
  EXPECT_THAT(resolve({"100000", "0"}).error().message(), HasSubstr("more than 65536 labels"));
  EXPECT_EQ(resolve({"100000", "0"}).error().code, ErrorCode::kBadData);
  for (const LabelRequest& request : {LabelRequest{.problem = kSingleLabel, .num_labels = 1},
                                      LabelRequest{.config = {{"x"}, kSingleLabel}, .whole = true}}) {
    const auto result = resolve({"0", "1"}, request);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(result.error().message(), HasSubstr("one label, which leaves nothing to tell apart"));
    EXPECT_FALSE(labels_without_data(request));
  }
}

std::string problem_with(const std::vector<std::string>& raw, const io::Labels& labels,
                         bool all_occur = false) {
  const io::TemporaryFolder folder;
  const LabelFile file = labels_of(folder, raw);
  const LabelFile* files[] = {&file};
  const Status status = check_labels(labels, files, all_occur, "data.train");
  if (status) return "";
  EXPECT_EQ(status.error().code, ErrorCode::kBadData);
  EXPECT_FALSE(status.error().hint.empty()) << status.error().message();
  const std::string folder_name = folder.path() + "/";
  std::string message = status.error().message();
  if (const size_t at = message.find(folder_name); at != message.npos) message.erase(at, folder_name.size());
  return message;
}

/// What check_labels says of what resolve_labels makes of them.
std::string contradiction_in(const std::vector<std::string>& raw, const LabelRequest& request = {}) {
  const auto labels = resolve(raw, request);
  return labels ? problem_with(raw, *labels, /*all_occur=*/true) : "resolve: " + labels.error().message();
}

TEST(ResolveLabels, LeavesContradictoryExamplesToBeNamed) {
  // The first one says what is meant where texts stand beside numbers that are no classes.
  EXPECT_EQ(contradiction_in({"0.5", "\"good\""}), "label is 'good', expected a number: x.jsonl: line 2");
  EXPECT_EQ(contradiction_in({"1", "\"good\"", "0.5"}),
            "label is 'good', expected a number: x.jsonl: line 2");
  EXPECT_EQ(contradiction_in({"\"good\"", "0.5"}), "label is 0.5, expected a class: x.jsonl: line 2");
  EXPECT_EQ(contradiction_in({"\"good\"", "\"bad\"", "0.5"}),
            "label is 0.5, expected a class: x.jsonl: line 3");
  EXPECT_EQ(contradiction_in({"[0, 1]", "[1, 0]"}, {.problem = kSingleLabel}),
            "label is a list, expected a class: x.jsonl: line 1");
  EXPECT_EQ(contradiction_in({"0.5", "0.7"}, {.problem = kSingleLabel}),
            "label is 0.5, expected a class: x.jsonl: line 1");
  EXPECT_EQ(contradiction_in({"0", "1"}, {.problem = kMultiLabel}),
            "label is 0, expected a list of values 0 or 1: x.jsonl: line 1");
}

TEST(CheckLabels, NamesTheExampleThatHasNone) {
  const io::Labels single{kSingleLabel, {"neg", "pos"}}, multi{kMultiLabel, {"a", "b"}},
      one{kRegression, {"y"}}, two{kRegression, {"y", "z"}};
  EXPECT_EQ(problem_with({"0", "\"pos\"", "\"neg\""}, single), "");
  EXPECT_EQ(problem_with({"0", "2"}, single), "label is 2, and there are 2: neg, pos: x.jsonl: line 2");
  EXPECT_EQ(problem_with({"-1"}, single), "label is -1, and there are 2: neg, pos: x.jsonl: line 1");
  EXPECT_EQ(problem_with({"0", "\"x\""}, single),
            "label is 'x', and the labels are neg, pos: x.jsonl: line 2");
  EXPECT_EQ(problem_with({"0", "1.0"}, single), "label is 1.0, expected a class: x.jsonl: line 2");
  EXPECT_EQ(problem_with({"[0]"}, single), "label is a list, expected a class: x.jsonl: line 1");
  EXPECT_EQ(problem_with({"[0, 1]", "[1, 1]"}, multi), "");
  EXPECT_EQ(problem_with({"[0, 2]"}, multi),
            "label is a list with 2, expected a list of 2 values 0 or 1: x.jsonl: line 1");
  EXPECT_EQ(problem_with({"[0, 1, 1]"}, multi),
            "label is a list of 3, expected a list of 2 values 0 or 1: x.jsonl: line 1");
  EXPECT_EQ(problem_with({"0"}, {kMultiLabel, {"a"}}),
            "label is 0, expected a list of values 0 or 1: x.jsonl: line 1");
  EXPECT_EQ(problem_with({"1"}, multi), "label is 1, expected a list of 2 values 0 or 1: x.jsonl: line 1");
  EXPECT_EQ(problem_with({"1", "0.5"}, one), "");
  EXPECT_EQ(problem_with({"[0.5]"}, one), "");
  EXPECT_EQ(problem_with({"1", "\"good\""}, one), "label is 'good', expected a number: x.jsonl: line 2");
  EXPECT_EQ(problem_with({"[1, -3.5]"}, two), "");
  EXPECT_EQ(problem_with({"1"}, two), "label is 1, expected a list of 2 numbers: x.jsonl: line 1");
}

TEST(CheckLabels, EveryClassHasAnExampleInTraining) {
  const io::Labels three{kSingleLabel, {"neg", "neu", "pos"}};
  EXPECT_EQ(problem_with({"0", "2"}, three), "");
  EXPECT_EQ(problem_with({"0", "2"}, three, true), "label neu (1) has no example: data.train");
  EXPECT_EQ(problem_with({"0", "2", "\"neu\""}, three, true), "");
  EXPECT_EQ(problem_with({"[0, 0]"}, {kMultiLabel, {"a", "b"}}, true), "");
}

}  // namespace
}  // namespace plimsoll::corpora
