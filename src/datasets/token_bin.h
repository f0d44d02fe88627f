// Files of tokens as nanoGPT and llm.c write them, .bin both:
//
//   nanoGPT            u16 after u16, nothing else
//   llm.c, GPT-2       256 × i32 {20240520, 1, number of tokens, 0, …}, then u16
//   llm.c, Llama 3     256 × i32 {20240801, 7, number of tokens, 0, …}, then u32
//
// All little-endian. Sources: nanoGPT data/openwebtext/prepare.py; llm.c dev/data/data_common.py at 16635d4.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "io/file.h"
#include "io/npy.h"

namespace plimsoll::datasets {

/// What of the file parse_token_bin looks at.
inline constexpr int64_t kTokenBinPrefixBytes = 1024;

/// The file as an array of one dimension. Errors: kBadData for a header that the file does not keep to, for
/// files that are known to be something else, for half a token at the end.
Result<io::NpyHeader> read_token_bin(const io::ReadFile& file);
/// The same from bytes: `prefix` holds the file's first 1024 or all of it.
Result<io::NpyHeader> parse_token_bin(std::span<const std::byte> prefix, int64_t file_bytes);

}  // namespace plimsoll::datasets
