#include "cli/inspect/inspect_shard.h"

#include <fmt/format.h>

#include "base/numbers.h"
#include "base/units.h"
#include "cli/data/length_histogram.h"
#include "cli/data/masked_text.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "datasets/shard.h"
#include "io/checksum.h"

namespace plimsoll::cli {

void add_lengths(Facts& facts, const LengthHistogram& lengths) {
  if (lengths.num_documents() == 0) return;
  io::Tree summary = io::Tree::map({{"shortest", io::Tree::of(lengths.shortest())},
                                    {"mean", io::Tree::of(lengths.mean())},
                                    {"longest", io::Tree::of(lengths.longest())}});
  for (const int percent : {1, 10, 50, 90, 99})
    summary.members.emplace_back(fmt::format("p{}", percent),
                                 io::Tree::of(lengths.percentile(static_cast<double>(percent) / 100)));
  io::Tree bins = io::Tree::list();
  for (const LengthHistogram::Bin& bin : lengths.bins())
    bins.items.push_back(io::Tree::map({{"least", io::Tree::of(bin.least)},
                                        {"most", io::Tree::of(bin.most)},
                                        {"documents", io::Tree::of(bin.documents)},
                                        {"tokens", io::Tree::of(bin.tokens)}}));
  summary.members.emplace_back("bins", std::move(bins));
  facts.add("lengths", std::move(summary), "lengths", lengths.summary());
}

Status inspect_shard(const InspectArguments& arguments) {
  PLIMSOLL_ASSIGN(const datasets::Shard shard, datasets::Shard::open(arguments.path));
  const datasets::ShardInfo& info = shard.info();
  LengthHistogram lengths;
  PLIMSOLL_TRY(shard.visit_documents([&](const datasets::ShardDocument& document) -> Status {
    lengths.add(document.num_tokens());
    return Ok{};
  }));
  Status sound = shard.verify();
  const double in_loss = info.num_tokens == 0 ? 0
                                              : 100 * static_cast<double>(info.num_targets) /
                                                    static_cast<double>(info.num_tokens);
  Facts facts("shard");
  facts.add("path", io::Tree::of(arguments.path), "shard", arguments.path);
  facts.add("bytes", io::Tree::of(info.file_bytes), "size", to_string(Bytes(info.file_bytes)));
  facts.add("documents", io::Tree::of(info.num_documents), "documents", grouped(info.num_documents));
  facts.add("tokens", io::Tree::of(info.num_tokens), "tokens",
            fmt::format("{}, ids of {} bytes", grouped(info.num_tokens), info.id_bytes));
  facts.add("targets", io::Tree::of(info.num_targets), "targets",
            fmt::format("{} ({:.1f} % of the tokens; {})", grouped(info.num_targets), in_loss,
                        info.has_mask ? "a mask says which" : "no mask: all but each document's first"));
  facts.add("has_mask", io::Tree::of(info.has_mask));
  facts.add("id_bytes", io::Tree::of(int64_t{info.id_bytes}));
  facts.add(
      "vocab_size", io::Tree::of(info.vocab_size), "vocabulary",
      fmt::format("{} ids{}", grouped(info.vocab_size),
                  info.vocabulary_hash == 0 ? "" : ", hash " + io::checksum_text(info.vocabulary_hash)));
  facts.add("vocabulary_hash", io::Tree::of(io::checksum_text(info.vocabulary_hash)));
  facts.add("content_hash", io::Tree::of(io::checksum_text(info.content_hash)), "content",
            "hash " + io::checksum_text(info.content_hash));
  add_lengths(facts, lengths);
  facts.add("sound", io::Tree::of(sound.ok()), "checked", sound ? "every byte" : "damaged, see below");
  facts.print(arguments.json);
  if (!arguments.json && lengths.num_documents() > 0)
    print_text("\ndocuments by length in tokens\n" + lengths.picture(stdout_width()));
  return sound;
}

}  // namespace plimsoll::cli
