#include "columnar/column_types.h"

#include <arrow/extension_type.h>
#include <arrow/util/key_value_metadata.h>

namespace plimsoll::columnar {
namespace {

using arrow::Type;

/// The storage of Parquet's variants, bytes in a form of their own.
constexpr std::string_view kVariants[] = {"arrow.parquet.variant", "parquet.variant"};

std::string named(const std::string& path, const arrow::DataType& type) {
  return path + ", of type " + type.ToString();
}

bool is_text(const arrow::DataType& type) {
  return type.id() == Type::STRING || type.id() == Type::LARGE_STRING || type.id() == Type::STRING_VIEW;
}

bool is_utc(const arrow::DataType& type) {
  const std::string& zone = static_cast<const arrow::TimestampType&>(type).timezone();
  return zone.empty() || zone == "UTC" || zone == "+00:00" || zone == "Etc/UTC";
}

bool is_scalar(const arrow::DataType& type) {
  switch (type.id()) {
    case Type::NA:
    case Type::BOOL:
    case Type::BINARY:
    case Type::LARGE_BINARY:
    case Type::BINARY_VIEW:
    case Type::FIXED_SIZE_BINARY:
    case Type::DATE32:
    case Type::DATE64:
    case Type::TIME32:
    case Type::TIME64:
      return true;
    case Type::TIMESTAMP:
      return is_utc(type);
    default:
      return is_text(type) || arrow::is_integer(type.id()) || arrow::is_floating(type.id()) ||
             arrow::is_decimal(type.id());
  }
}

std::string unread(const arrow::Field& field, const std::string& path, int depth);

std::string unread_type(const std::shared_ptr<arrow::DataType>& type, const std::string& path, int depth) {
  return unread(*arrow::field("", type), path, depth);
}

std::string unread_extension(const arrow::DataType& type, std::string_view name, const std::string& path,
                             int depth) {
  const bool wrapped = type.id() == Type::EXTENSION;
  const auto storage =
      wrapped ? static_cast<const arrow::ExtensionType&>(type).storage_type() : type.GetSharedPtr();
  for (const std::string_view variant : kVariants)
    if (name == variant) return named(path, type);
  if (name == kJsonExtension) return is_text(*storage) ? "" : named(path, type);
  return unread_type(storage, path, depth);
}

std::string unread(const arrow::Field& field, const std::string& path, int depth) {
  const arrow::DataType& type = *field.type();
  if (depth > kMostDepth) return path + ", nested too deep";
  if (const std::string name = extension_of(field); !name.empty())
    return unread_extension(type, name, path, depth + 1);
  switch (type.id()) {
    case Type::LIST:
    case Type::LARGE_LIST:
    case Type::FIXED_SIZE_LIST:
    case Type::LIST_VIEW:
    case Type::LARGE_LIST_VIEW:
      return unread(*type.field(0), path + "[]", depth + 1);
    case Type::MAP: {
      const auto& map = static_cast<const arrow::MapType&>(type);
      return is_text(*map.key_type()) ? unread(*map.item_field(), path + "{}", depth + 1) : named(path, type);
    }
    case Type::STRUCT:
      for (const auto& member : type.fields())
        if (std::string part = unread(*member, path + "." + member->name(), depth + 1); !part.empty())
          return part;
      return "";
    case Type::DICTIONARY:
      return unread_type(static_cast<const arrow::DictionaryType&>(type).value_type(), path, depth + 1);
    case Type::RUN_END_ENCODED:
      return unread_type(static_cast<const arrow::RunEndEncodedType&>(type).value_type(), path, depth + 1);
    default:
      return is_scalar(type) ? "" : named(path, type);
  }
}

}  // namespace

std::string extension_of(const arrow::Field& field) {
  if (field.type()->id() == Type::EXTENSION)
    return static_cast<const arrow::ExtensionType&>(*field.type()).extension_name();
  const int at = field.metadata() == nullptr ? -1 : field.metadata()->FindKey("ARROW:extension:name");
  return at < 0 ? std::string() : field.metadata()->value(at);
}

std::string unread_part(const arrow::Field& column) { return unread(column, column.name(), 0); }

}  // namespace plimsoll::columnar
