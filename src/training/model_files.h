// Tokenizer and template files of a saved model: the tokenizer, the chat template and the ends
// of generation that the run used, as transformers reads them.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "checkpoints/model_file.h"
#include "settings/run_config.h"

namespace plimsoll::training {

/// Files of data.tokenizer, else of the model's folder: copies, and where the run used another template or
/// tokenizer than the folder says, files that say what it used. None where text is read as bytes.
///   tokenizer_config.json    with the chat template; made where there is none
///   special_tokens_map.json  made where there is none
///   generation_config.json   the model's; with another tokenizer or template, or where there is none, eos is
///                            what ends a text and what the template ends a turn with, pad as the tokenizer
///                            says, else eos
/// A classifier whose config names no pad token gets one with its tokenizer (corpora/pad_token.h), and so
/// does its tokenizer: none of `row_ends`, which examples end with. `notes` say where data.tokenizer has
/// another vocabulary than the pretrained model's own one. Errors: kBadData of these files, kIo.
Result<checkpoints::ModelFileSet> model_files(const settings::RunConfig& config, const io::ConfigJson& model,
                                              std::span<const int32_t> row_ends = {});

/// The same by a process of its own: a large tokenizer takes memory that is in no plan. Call while no other
/// thread runs. Errors: as model_files; kIo, kInterrupted.
Result<checkpoints::ModelFileSet> model_files_apart(const settings::RunConfig& config,
                                                    const io::ConfigJson& model,
                                                    std::span<const int32_t> row_ends = {});

}  // namespace plimsoll::training
