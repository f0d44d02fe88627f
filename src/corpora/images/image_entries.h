// Collects images and their labels: from folders of class folders, and from tables that name files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "corpora/example.h"
#include "corpora/labelled/raw_label.h"
#include "corpora/labelled/resolve_labels.h"

namespace plimsoll::corpora {

/// An image as the data names it; what is in its file is not known yet.
struct ImageEntry {
  std::string path = {};
  std::string name = {};                      ///< as its table or folder spells it: "cats/1.png"
  RawLabelKind kind = RawLabelKind::kAbsent;  ///< kName, kInteger, or none where none is wanted
  float value = 0;                            ///< of a name its index into ImageEntries::names
  uint32_t place = 0;                         ///< index into ImageEntries::places
  int64_t line = 0;                           ///< of a table, from 1; 0: the place is a folder
  int64_t offset = 0;                         ///< in the file
  int64_t bytes = 0;                          ///< of a part of the file; 0: the file is the image
};

struct ImageEntries {
  std::vector<ImageEntry> images = {};
  std::vector<std::string> names = {};   ///< of labels, in the order in which they came
  std::vector<std::string> places = {};  ///< folders and tables that the images are from
  int64_t num_others = 0;                ///< files in the folders that are no images, by their names
  /// Of the places whose labels are ids with names, by the place's index: the names by id.
  std::map<uint32_t, std::vector<std::string>> id_names = {};
  SkipCounts skipped = {};  ///< rows of tables that cannot be used

  /// The index of a label's name, which is added where it is new.
  uint32_t name_index(const std::string& name);
  /// The image's label as label files take it.
  [[nodiscard]] RawLabel label_of(const ImageEntry& image) const;
  /// "table.csv: line 7", or the folder.
  [[nodiscard]] std::string place_of(const ImageEntry& image) const;

 private:
  std::map<std::string, uint32_t, std::less<>> indices_ = {};
};

/// How images are collected.
struct ImageCollection {
  bool with_labels = true;  ///< else none are looked at: a folder's images lie anywhere in it
  OnError on_error = OnError::kFail;
  std::string packs_folder = {};  ///< where images within Parquet and Arrow files go (image_columns.h)
  bool makes_packs = true;        ///< else only packs that are there are used
};

/// Adds the images of an entry of the data: a folder of class folders, a table (image_table.h), a pack
/// (image_pack.h), or a Parquet or Arrow file (image_columns.h). A folder that holds metadata.csv or
/// metadata.jsonl is that table, one that datasets' save_to_disk wrote its Arrow files. Errors: as there.
Status add_images(const std::string& entry, const ImageCollection& how, ImageEntries& entries);

/// The names of the labels that are ids; none where ids of some places have others or none.
std::vector<std::string> names_of_ids(const ImageEntries& entries);
/// Labels that are ids with names become these names. Errors: kBadData with the place for an id without one.
Status name_ids(ImageEntries& entries);

/// Adds what is seen of the labels, for resolve_labels.
void summarize(const ImageEntries& entries, LabelSummary& found);

/// Class names in the order of their ids: whole numbers by value ("2" before "10"), any other names by bytes.
void sort_class_names(std::vector<std::string>& names);

}  // namespace plimsoll::corpora
