#include "cli/inspect/inspect_pack.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "base/numbers.h"
#include "base/units.h"
#include "cli/table.h"
#include "datasets/packing.h"
#include "io/file.h"

namespace plimsoll::cli {

bool is_pack_index(const std::string& path) {
  const auto file = io::ReadFile::open(path);
  std::array<char, datasets::kPackMagic.size()> magic;
  return file && file->size_bytes() >= static_cast<int64_t>(magic.size()) &&
         file->read_at(0, std::as_writable_bytes(std::span(magic))) &&
         std::string_view(magic.data(), magic.size()) == datasets::kPackMagic;
}

Status inspect_pack(const InspectArguments& arguments) {
  PLIMSOLL_ASSIGN(const datasets::PackReport r, datasets::PackIndex::read_report(arguments.path));
  PLIMSOLL_ASSIGN(const io::ReadFile file, io::ReadFile::open(arguments.path));
  Facts facts("pack_index");
  facts.add("path", io::Tree::of(arguments.path), "pack index", arguments.path);
  facts.add("bytes", io::Tree::of(file.size_bytes()), "size", to_string(Bytes(file.size_bytes())));
  facts.add("sequences", io::Tree::of(r.num_sequences), "sequences",
            fmt::format("{} of {} tokens, {:.1f} % filled", grouped(r.num_sequences),
                        grouped(r.sequence_length), 100 * r.filled()));
  facts.add("sequence_length", io::Tree::of(r.sequence_length));
  facts.add("segments", io::Tree::of(r.num_segments), "segments",
            fmt::format("{}: pieces of documents that stand in sequences", grouped(r.num_segments)));
  facts.add("tokens", io::Tree::of(r.num_tokens), "tokens",
            fmt::format("{} of the {} in the shards", grouped(r.num_tokens), grouped(r.tokens)));
  facts.add("targets", io::Tree::of(r.num_targets), "targets", grouped(r.num_targets));
  facts.add("documents", io::Tree::of(r.documents), "documents",
            fmt::format("{}, {} kept, {} too long, {} without a loss token, {} held out for evaluation",
                        grouped(r.documents), grouped(r.kept_documents), grouped(r.too_long_documents),
                        grouped(r.no_target_documents), grouped(r.other_side_documents)));
  facts.add("kept_documents", io::Tree::of(r.kept_documents));
  facts.add("too_long_documents", io::Tree::of(r.too_long_documents));
  facts.add("no_target_documents", io::Tree::of(r.no_target_documents));
  facts.add("other_side_documents", io::Tree::of(r.other_side_documents));
  facts.line("checked", "every byte; its shards are not checked");
  facts.print(arguments.json);
  return Ok{};
}

}  // namespace plimsoll::cli
