// plimsoll data: from people's files to tokens. Its parts are a file each.

#include "cli/commands.h"
#include "cli/data/data_inspect.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kDataFooter = R"(examples:
  plimsoll data tokenizer --input "corpus/*.txt" --vocab-size 32000 --output my-tokenizer
  plimsoll data tokenize --tokenizer my-tokenizer --input "corpus/*.txt" --output train.shard
  plimsoll data inspect train.shard --tokenizer my-tokenizer
  plimsoll data pack --input flowers/train --output flowers.pack
  plimsoll data cache runs/one --limit 10GiB)";

}  // namespace

Command add_data(Parser app) {
  Parser data = app.add_subcommand(
      "data", "tokenize text and conversations, train tokenizers, pack images, inspect data");
  data.require_subcommand();
  data.footer(kDataFooter);
  const std::vector<std::pair<std::string, Command>> parts = {{"tokenizer", add_data_tokenizer(data)},
                                                              {"tokenize", add_data_tokenize(data)},
                                                              {"inspect", add_data_inspect(data)},
                                                              {"pack", add_data_pack(data)},
                                                              {"cache", add_data_cache(data)}};
  return [data, parts](const Environment& environment) -> Status {
    for (const auto& [name, part] : parts)
      if (data.got_subcommand(name)) return part(environment);
    return Ok{};
  };
}

}  // namespace plimsoll::cli
