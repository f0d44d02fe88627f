// Settings that do nothing for the data at hand are named, those that do something are not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "preprocessing/data_files.h"

namespace plimsoll::preprocessing {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Everything that acts on some kind of data alone. The files need not be there: their names tell.
settings::DataSettings all_given(std::vector<std::string> train) {
  settings::DataSettings data;
  data.train = std::move(train);
  data.packing = "best_fit";
  data.long_documents = "drop";
  data.packing_window = 100;
  data.chat_template = "chat.jinja";
  data.loss = "assistant";
  data.text_key = "body";
  data.append_eos = "true";
  data.on_error = "skip";
  return data;
}

TEST(IdleSettings, EachKindHasItsOwn) {
  const std::string packing = "data.packing, data.long_documents, data.packing_window, ";
  const std::string chats = "data.chat_template, data.loss, data.text_key";
  const std::string reading = ", data.append_eos, data.on_error";
  const auto lines = [](const char* file, bool as_bytes) {
    return idle_settings(all_given({file}), /*train=*/true, as_bytes);
  };
  EXPECT_THAT(lines("a.npy", false),
              ElementsAre(packing + chats + reading + " have no effect on .npy and .bin files"));
  EXPECT_THAT(lines("a.bin", false).size(), 1U);
  EXPECT_THAT(lines("a.shard", false), ElementsAre(chats + reading + " have no effect on token shards"));
  EXPECT_THAT(lines("a.jsonl", false), IsEmpty());
  EXPECT_THAT(lines("a.txt", false), ElementsAre(chats + " have no effect on plain texts"));
  EXPECT_THAT(lines("a.txt", true),
              ElementsAre(packing + chats + reading + " have no effect on texts read as bytes"));
}

TEST(IdleSettings, OfAMixtureEachKindIsTold) {
  settings::DataSettings data;
  data.train = {"a.shard", "b.jsonl", "c.npy"};
  data.loss = "all";
  EXPECT_THAT(idle_settings(data, true, false), ElementsAre("data.loss has no effect on .npy and .bin files",
                                                            "data.loss has no effect on token shards"));
}

TEST(IdleSettings, WhatIsNotReadIsNotTold) {
  settings::DataSettings data;
  data.train = {"a.shard"};
  data.eval = {"b.jsonl"};
  data.loss = "all";
  EXPECT_THAT(idle_settings(data, /*train=*/false, false), IsEmpty());
  data.loss = "auto";
  EXPECT_THAT(idle_settings(data, /*train=*/true, false), IsEmpty()) << "nothing is given";
}

TEST(IdleSettings, OneStreamIsWhatAnArrayIs) {
  settings::DataSettings data;
  data.train = {"a.npy"};
  data.packing = "stream";
  EXPECT_THAT(idle_settings(data, true, false), IsEmpty());
}

}  // namespace
}  // namespace plimsoll::preprocessing
