// Reads the header of every image before a run begins: it finds the files that cannot be decoded, and the
// memory that decoding takes, which the plan counts.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "base/stop.h"
#include "corpora/images/image_list.h"
#include "images/augment.h"
#include "images/image_info.h"
#include "images/processor.h"

namespace plimsoll::corpora {

struct ScanImages {
  const images::Processor& processor;
  const images::Augmentations* augmentations = nullptr;  ///< null: none
  OnError on_error = OnError::kFail;
  int num_threads = 1;
  std::function<void(int64_t done, int64_t total)> progress = {};
  Stop stop = {};
};

struct ScannedImages {
  std::vector<ImageFacts> facts = {};         ///< one for each image that is left
  std::vector<images::ImageInfo> infos = {};  ///< its header
  ImageListSummary summary = {};
  SkipCounts skipped = {};
};

/// Reads the header of each image. Images that cannot be used are errors, or are taken out and counted
/// (OnError::kSkip). Determinism: nothing depends on the number of threads. Errors: kBadData for the first
/// that cannot be used, with its file and where it is named; kBadData where none is left; kInterrupted; kIo.
Result<ScannedImages> scan_images(ImageEntries& entries, const ScanImages& how);

}  // namespace plimsoll::corpora
