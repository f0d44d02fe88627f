#include "analysis/card_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strategy/run_device.h"

namespace plimsoll::analysis {
namespace {

using testing::HasSubstr;

/// The presets cut down to two layers and few words, on cards that are small in proportion.
TEST(CardTable, ARowIsThePlanOfItsSettings) {
  const auto config = settings::parse_run_config(
      card_table_run(), "the run of the table",
      std::vector<std::string>{"model.overrides={num_hidden_layers: 2, vocab_size: 512}",
                               "data.sequence_length=256"});
  ASSERT_TRUE(config);
  const std::vector<Card> small = {{"1 GB", 1'000'000'000, "llama-3.2-1b", 8},
                                   {"1.5 GB", 1'500'000'000, "llama-3.2-1b", 0}};
  const auto rows = plan_cards(*config, {}, small);
  ASSERT_TRUE(rows) << rows.error().what;
  for (const CardRow& row : *rows) {
    const auto changed = strategy::with_settings(*config, row.settings);
    const auto target = strategy::make_target(*changed, 1);
    const auto alone = strategy::prepare(*changed, *target, {});
    ASSERT_TRUE(alone);
    EXPECT_EQ(alone->report.fits, row.report.fits);
    EXPECT_EQ(alone->report.device_peak_bytes(), main_peak_bytes(row.report));
  }
  EXPECT_TRUE((*rows)[0].report.fits);
  EXPECT_LT((*rows)[0].least_bytes, main_peak_bytes((*rows)[0].report) + 1);
  // 16 bytes a parameter, and what does fit.
  const CardRow& full = (*rows)[1];
  EXPECT_FALSE(full.report.fits);
  EXPECT_GE(full.least_bytes, 16 * full.num_parameters);
  ASSERT_FALSE(full.report.remedies.empty());
  EXPECT_LE(full.report.remedies[0].peak_bytes, full.card.bytes);
  EXPECT_THAT(card_table(*rows), HasSubstr("does NOT fit"));
  EXPECT_EQ(card_event(*rows).find("rows")->items.size(), 2u);
}

TEST(CardTable, EachCardIsOfAKnownModel) {
  for (const Card& card : cards())
    EXPECT_TRUE(settings::parse_run_config(card_table_run(), "run",
                                           std::vector<std::string>{"model.preset=" + card.preset}))
        << card.preset;
}

}  // namespace
}  // namespace plimsoll::analysis
