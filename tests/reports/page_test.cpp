#include "reports/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "corpora/images/image_files.h"
#include "io/json.h"
#include "io/temporary_folder.h"
#include "reports/html.h"

namespace plimsoll::reports {
namespace {

using testing::HasSubstr;
using testing::Not;

ReportedRun run_of(std::string name, int64_t num_steps) {
  ReportedRun run;
  run.name = std::move(name);
  for (int64_t s = 1; s <= num_steps; ++s) {
    StepRow row;
    row.step = s;
    row.values[static_cast<size_t>(Figure::kLoss)] = 1.0 / static_cast<double>(s);
    run.events.steps.push_back(row);
  }
  return run;
}

/// What scripts of the page read.
io::Tree data_of(const std::string& page) {
  const std::string begin = "id=\"data\">";
  const size_t at = page.find(begin) + begin.size();
  auto tree = io::parse_json(page.substr(at, page.find("</script>", at) - at), {.max_bytes = 4 << 20});
  EXPECT_TRUE(tree);
  return tree ? *tree : io::Tree{};
}

TEST(ReportPage, HoldsTheFiguresOfTheEvents) {
  const ReportedRun run = run_of("one", 3);
  const std::string page = report_page(std::span(&run, 1));
  EXPECT_THAT(page, HasSubstr("data-figure=\"last_loss\" data-value=\"0.333333333\">0.333333 at step 3"));
  const io::Tree data = data_of(page);
  const io::Tree& loss = *data.find("runs")->items[0].find("curves")->find("loss");
  EXPECT_EQ(io::to_json(*loss.find("x")), "[1, 2, 3]");
  EXPECT_EQ(loss.find("y")->items[1].number, 0.5);
  EXPECT_THAT(page, Not(HasSubstr("id=\"downsampled\"")));
}

TEST(ReportPage, SaysThatLongCurvesAreDownsampled) {
  const ReportedRun run = run_of("long", 20'000);
  const std::string page = report_page(std::span(&run, 1));
  EXPECT_THAT(page, HasSubstr("id=\"downsampled\""));
  EXPECT_LT(page.size(), 400'000U);
}

TEST(ReportPage, NoTextOfARunEndsUpAsMarkup) {
  ReportedRun run = run_of("</script><script>alert(1)</script>\xff", 1);
  run.events.warnings = {"<x-warning>"};
  run.events.evals = {{"</script>", 1, 2.0, {{"<x-metric>", 1.0}}}};
  run.events.checkpoints = {{1, "\x1b[2J\"><x-path>", 0.5}};
  run.environment = io::Tree::map({{"<x-key>", io::Tree::of(std::string("<x-value>"))}});
  const std::string page = report_page(std::span(&run, 1));
  for (const char* markup : {"<script>alert", "<x-", "\x1b["})
    EXPECT_THAT(page, Not(HasSubstr(markup))) << markup;
  EXPECT_EQ(data_of(page).find("runs")->items[0].find("name")->text, "</script><script>alert(1)</script>?");
}

TEST(ReportPage, ComparesTheSettingsOfRuns) {
  ReportedRun runs[] = {run_of("a", 1), run_of("b", 1)};
  runs[0].settings = {
      {"training.seed", "1", "42"}, {"training.max_steps", "5", "null"}, {"data.shuffle", "true", "true"}};
  runs[1].settings = {
      {"training.seed", "2", "42"}, {"training.max_steps", "5", "null"}, {"data.shuffle", "true", "true"}};
  const std::string text = settings_section(runs);
  EXPECT_LT(text.find("training.seed"), text.find("id=\"changed\""));
  EXPECT_GT(text.find("training.max_steps"), text.find("id=\"changed\""));
  EXPECT_THAT(text, Not(HasSubstr("data.shuffle")));
}

TEST(ReportPage, ShowsTheConfusionMatrix) {
  ReportedRun run = run_of("one", 1);
  run.events.last_eval =
      *io::parse_json(R"({"confusion_matrix": {"labels": ["<x-cat>", "dog"], "counts": [[3, 1], [0, 5]]}})");
  const std::string text = predictions_section(run);
  EXPECT_THAT(text, HasSubstr("style=\"--share:0.750\">3</span>"));
  EXPECT_THAT(text, HasSubstr("75.0 %"));
  EXPECT_THAT(text, HasSubstr("100.0 %"));
  EXPECT_THAT(text, Not(HasSubstr("<x-")));
  run.events.last_eval =
      *io::parse_json(R"({"most_confused": [{"label": "cat", "predicted": "dog", "count": 6}]})");
  EXPECT_THAT(predictions_section(run), HasSubstr("taken for"));
  for (const char* damaged : {R"({"confusion_matrix": {"labels": ["a"], "counts": [[1, 2]]}})",
                              R"({"confusion_matrix": {"labels": ["a", "b"], "counts": [[1, 2]]}})",
                              R"({"confusion_matrix": {"labels": ["a"], "counts": [[-1]]}})",
                              R"({"confusion_matrix": {"labels": ["a"], "counts": [[1e99]]}})",
                              R"({"confusion_matrix": [], "most_confused": [1, {"label": "a"}]})"}) {
    run.events.last_eval = *io::parse_json(damaged);
    EXPECT_EQ(predictions_section(run), "") << damaged;
  }
}

TEST(ReportPage, ShowsPicturesWithTheirAnswers) {
  ReportedRun run = run_of("one", 1);
  run.pictures = {{"\"><x-a>.png", "cat", "<x-dog>", 0.875, "\x89PNG"},
                  {"gone.png", "cat", "cat", std::nan("")}};
  const std::string page = report_page(std::span(&run, 1));
  EXPECT_THAT(page, HasSubstr("src=\"data:image/png;base64,iVBORw==\""));
  EXPECT_THAT(page, HasSubstr("87.5 %"));
  EXPECT_THAT(page, HasSubstr("no file"));
  EXPECT_THAT(page, Not(HasSubstr("<x-")));
}

TEST(ReportPage, ReadsThePicturesThatThereAre) {
  const io::TemporaryFolder folder;
  folder.write("a.png", corpora::png_of(100, 90, 200, 0, 0));
  folder.write("b.png", "no image");
  const auto example = [&](const std::string& file) {
    return io::Tree::map({{"name", io::Tree::of(folder.path(file))},
                          {"label", io::Tree::of(std::string("red"))},
                          {"predicted", io::Tree::of(std::string("blue"))},
                          {"score", io::Tree::of(0.5)}});
  };
  const io::Tree eval = io::Tree::map(
      {{"examples", io::Tree::list({example("a.png"), example("b.png"), example("c.png"), io::Tree{}})}});
  std::vector<std::string> notes;
  const auto pictures = read_pictures(eval, notes);
  ASSERT_EQ(pictures.size(), 3U);
  EXPECT_TRUE(pictures[0].png.starts_with("\x89PNG"));
  EXPECT_EQ(pictures[0].score, 0.5);
  EXPECT_TRUE(pictures[1].png.empty() && pictures[2].png.empty());
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes[0], HasSubstr("2 of 3 images"));
}

TEST(ReportPage, WritesBytesInBase64) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("\xff\xfe\xfd"), "//79");
}

TEST(ReportPage, OpensOnNothingToDraw) {
  const ReportedRun run = run_of("empty", 0);
  EXPECT_THAT(report_page(std::span(&run, 1)), HasSubstr("no summary"));
}

}  // namespace
}  // namespace plimsoll::reports
