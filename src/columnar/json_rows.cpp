#include "columnar/json_rows.h"

#include <arrow/extension_type.h>
#include <arrow/util/ree_util.h>

#include <string_view>

#include "columnar/column_types.h"
#include "columnar/json_scalars.h"

namespace plimsoll::columnar {
namespace {

using arrow::Type;

/// `extension`: the field's, where its type does not know it.
void append(const arrow::Array& array, int64_t row, std::string_view extension, int depth, std::string& out);

/// A value of an array that `field` describes.
void append_of(const arrow::Field& field, const arrow::Array& array, int64_t row, int depth,
               std::string& out) {
  append(array, row, extension_of(field), depth, out);
}

template <typename List>
void append_list(const arrow::Array& array, int64_t row, int depth, std::string& out) {
  const auto& list = static_cast<const List&>(array);
  const arrow::Field& field = *array.type()->field(0);
  const int64_t begin = list.value_offset(row), end = begin + list.value_length(row);
  out += '[';
  for (int64_t i = begin; i < end; ++i) {
    if (i > begin) out += ", ";
    append_of(field, *list.values(), i, depth + 1, out);
  }
  out += ']';
}

void append_struct(const arrow::Array& array, int64_t row, int depth, std::string& out) {
  const auto& fields = static_cast<const arrow::StructArray&>(array);
  out += '{';
  for (int i = 0; i < fields.num_fields(); ++i) {
    const arrow::Field& field = *fields.struct_type()->field(i);
    if (i > 0) out += ", ";
    append_text(field.name(), out);
    out += ": ";
    append_of(field, *fields.field(i), row, depth + 1, out);
  }
  out += '}';
}

/// Keys are texts.
void append_map(const arrow::Array& array, int64_t row, int depth, std::string& out) {
  const auto& map = static_cast<const arrow::MapArray&>(array);
  const arrow::Field& field = *static_cast<const arrow::MapType&>(*array.type()).item_field();
  const int64_t begin = map.value_offset(row), end = begin + map.value_length(row);
  out += '{';
  for (int64_t i = begin; i < end; ++i) {
    if (i > begin) out += ", ";
    append(*map.keys(), i, {}, depth + 1, out);
    out += ": ";
    append_of(field, *map.items(), i, depth + 1, out);
  }
  out += '}';
}

/// False where it holds no other values.
bool append_nested(const arrow::Array& array, int64_t row, int depth, std::string& out) {
  switch (array.type_id()) {
    case Type::LIST:
      return append_list<arrow::ListArray>(array, row, depth, out), true;
    case Type::LARGE_LIST:
      return append_list<arrow::LargeListArray>(array, row, depth, out), true;
    case Type::FIXED_SIZE_LIST:
      return append_list<arrow::FixedSizeListArray>(array, row, depth, out), true;
    case Type::LIST_VIEW:
      return append_list<arrow::ListViewArray>(array, row, depth, out), true;
    case Type::LARGE_LIST_VIEW:
      return append_list<arrow::LargeListViewArray>(array, row, depth, out), true;
    case Type::STRUCT:
      return append_struct(array, row, depth, out), true;
    case Type::MAP:
      return append_map(array, row, depth, out), true;
    case Type::DICTIONARY: {
      const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
      return append(*coded.dictionary(), coded.GetValueIndex(row), {}, depth + 1, out), true;
    }
    case Type::RUN_END_ENCODED: {
      const auto& runs = static_cast<const arrow::RunEndEncodedArray&>(array);
      const int64_t at =
          arrow::ree_util::FindPhysicalIndex(arrow::ArraySpan(*runs.data()), row, runs.offset());
      return append(*runs.values(), at, {}, depth + 1, out), true;
    }
    default:
      return false;
  }
}

/// What the storage of an extension type means; that of one without a meaning here is the value.
void append_extension(const arrow::Array& storage, int64_t row, std::string_view extension, int depth,
                      std::string& out) {
  const auto bytes = bytes_at(storage, row);
  if (extension == kJsonExtension && bytes)
    append_json(*bytes, out);
  else if (extension == kUuidExtension && bytes)
    append_uuid(*bytes, out);
  else if (extension == kBool8Extension && storage.type_id() == Type::INT8)
    out += static_cast<const arrow::Int8Array&>(storage).Value(row) != 0 ? "true" : "false";
  else
    append(storage, row, {}, depth, out);
}

void append(const arrow::Array& array, int64_t row, std::string_view extension, int depth, std::string& out) {
  if (depth > kMostDepth || array.IsNull(row)) {
    out += "null";
  } else if (array.type_id() == Type::EXTENSION) {
    const auto& wrapped = static_cast<const arrow::ExtensionArray&>(array);
    append(*wrapped.storage(), row, wrapped.extension_type()->extension_name(), depth + 1, out);
  } else if (!extension.empty()) {
    append_extension(array, row, extension, depth + 1, out);
  } else if (!append_nested(array, row, depth, out) && !append_scalar(array, row, out)) {
    out += "null";
  }
}

}  // namespace

void append_row(const arrow::RecordBatch& batch, int64_t row, std::string& out) {
  out += '{';
  for (int i = 0; i < batch.num_columns(); ++i) {
    if (i > 0) out += ", ";
    append_text(batch.column_name(i), out);
    out += ": ";
    append_of(*batch.schema()->field(i), *batch.column(i), row, 0, out);
  }
  out += "}\n";
}

}  // namespace plimsoll::columnar
