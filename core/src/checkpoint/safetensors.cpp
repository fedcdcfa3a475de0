// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/safetensors.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include "base/printable.hpp"
#include "checkpoint/strict_json.hpp"
#include "triax/error.hpp"

namespace triax::checkpoint {

namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::uint64_t kMaxHeader = 100'000'000; // of the format's own reader
constexpr std::size_t kAlignment = 8;
constexpr const char* kMetadata = "__metadata__";

/// A type of the format, and that of Triax.
struct FormatType {
  std::string_view name;
  std::uint64_t bits = 0;
  std::optional<DType> type = {};
};
constexpr std::array<FormatType, 22> kTypes = {{{"F32", 32, DType::f32},
                                                {"F64", 64, DType::f64},
                                                {"BF16", 16, DType::bf16},
                                                {"F16", 16, DType::f16},
                                                {"I32", 32, DType::i32},
                                                {"I64", 64, DType::i64},
                                                {"U8", 8, DType::u8},
                                                {"BOOL", 8},
                                                {"F4", 4},
                                                {"F6_E2M3", 6},
                                                {"F6_E3M2", 6},
                                                {"I8", 8},
                                                {"F8_E5M2", 8},
                                                {"F8_E4M3", 8},
                                                {"F8_E8M0", 8},
                                                {"F8_E4M3FNUZ", 8},
                                                {"F8_E5M2FNUZ", 8},
                                                {"I16", 16},
                                                {"U16", 16},
                                                {"U32", 32},
                                                {"C64", 64},
                                                {"U64", 64}}};
constexpr std::uint64_t kByte = 8; // bits

/// Bytes of tensors that are packed; empty if they do not end with a byte.
std::optional<std::uint64_t> packed_bytes(std::uint64_t elements, std::uint64_t bits) {
  if (elements % kByte * bits % kByte != 0) return std::nullopt;
  return elements / kByte * bits + elements % kByte * bits / kByte;
}

/// "[8, 37]"
std::string sizes_text(const Json& sizes) {
  std::string out = "[";
  for (const Json& size : sizes) out += (out.size() > 1 ? ", " : "") + size.dump();
  return out + "]";
}

/// Builds the errors of one file.
class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : path_(path) {}

  [[noreturn]] void fail(const std::string& why) const {
    throw Error(why, path_.string(), "the file is not a safetensors file, or was damaged: restore it, or use another");
  }
  [[noreturn]] void fail(const std::string& tensor, const std::string& why) const {
    fail(text("tensor \"{}\": {}", shortened(printable(tensor)), why));
  }

  Json parse(const std::string& bytes) const {
    if (bytes.empty() || bytes.front() != '{') fail("the header does not begin with \"{\"");
    Json header;
    const std::string problem = parse_strict(bytes, header);
    if (!problem.empty()) fail("the header " + problem);
    return header;
  }

  /// Other readers of the format refuse values that are not texts.
  void check_metadata(const Json& metadata) const {
    if (metadata.is_null()) return; // as if it were not there
    if (!metadata.is_object() || !std::ranges::all_of(metadata, [](const Json& value) { return value.is_string(); }))
      fail(text("{} is not an object of texts", kMetadata));
  }

  /// Adds the entry to those of its kind.
  void add(const std::string& name, const Json& value, SafetensorsHeader& out) const {
    if (!value.is_object() || !value.contains("dtype") || !value.contains("shape") || !value.contains("data_offsets"))
      fail(name, "needs dtype, shape and data_offsets");
    const Json &type = value["dtype"], &shape = value["shape"], &offsets = value["data_offsets"];
    if (!type.is_string()) fail(name, "dtype is not a text");
    const auto known = std::ranges::find(kTypes, type.get_ref<const std::string&>(), &FormatType::name);
    if (known == kTypes.end())
      fail(name, text("dtype \"{}\" is not a type of the format", shortened(printable(type.get<std::string>()))));
    const std::optional<std::uint64_t> elements = elements_of(shape);
    if (!elements) fail(name, "its shape is not a list of sizes");
    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
        !offsets[1].is_number_unsigned())
      fail(name, "data_offsets are not two offsets");
    const auto begin = offsets[0].get<std::uint64_t>(), end = offsets[1].get<std::uint64_t>();
    if (end < begin || packed_bytes(*elements, known->bits) != end - begin)
      fail(name, "data_offsets do not fit its shape and dtype");
    if (const std::optional<Shape> sizes = shape_of(shape); known->type && sizes) {
      out.entries.push_back({name, *known->type, *sizes, begin});
    } else {
      out.others.push_back({name, std::string(known->name), sizes_text(shape), begin, end - begin});
    }
  }

  /// Refuses gaps and overlaps.
  void check_data(const SafetensorsHeader& header, std::uint64_t bytes) const {
    struct Range {
      std::uint64_t begin, bytes;
      const std::string* name;
    };
    std::vector<Range> ranges;
    ranges.reserve(header.entries.size());
    for (const TensorEntry& entry : header.entries) ranges.push_back({entry.begin, entry.bytes(), &entry.name});
    for (const ForeignTensor& other : header.others) ranges.push_back({other.begin, other.bytes, &other.name});
    std::ranges::sort(ranges, {}, [](const Range& range) { return std::pair(range.begin, range.bytes); });
    std::uint64_t at = 0;
    for (const Range& range : ranges) {
      if (range.begin != at) fail(*range.name, text("its data begins at byte {} instead of {}", range.begin, at));
      at += range.bytes;
    }
    if (at != bytes) fail(text("has {} bytes of data, but its header names {}", bytes, at));
  }

 private:
  const std::filesystem::path& path_;
};

} // namespace

std::optional<DType> type_of_safetensors(std::string_view name) {
  const auto found = std::ranges::find(kTypes, name, &FormatType::name);
  return found == kTypes.end() ? std::nullopt : found->type;
}

std::string_view safetensors_name(DType type) {
  return std::ranges::find(kTypes, type, &FormatType::type)->name;
}

std::string make_header(std::span<TensorEntry> entries, std::span<const std::pair<std::string, std::string>> metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header[kMetadata] = Json::object();
  for (const auto& [key, value] : metadata) header[kMetadata][key] = value;
  std::uint64_t at = 0;
  for (TensorEntry& entry : entries) {
    entry.begin = at;
    at += entry.bytes();
    header[entry.name] = {
        {"dtype", safetensors_name(entry.dtype)}, {"shape", to_json(entry.shape)}, {"data_offsets", {entry.begin, at}}};
  }
  std::string json = header.dump();
  json.append((kAlignment - json.size() % kAlignment) % kAlignment, ' ');
  const std::uint64_t length = json.size();
  std::string out(sizeof length, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  return out + json;
}

SafetensorsHeader read_header(const os::InputFile& file, const std::filesystem::path& path) {
  const Reader reader(path);
  std::uint64_t length = 0;
  if (file.bytes() < sizeof length) reader.fail("is too short for a header");
  file.read_at(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > file.bytes() - sizeof length)
    reader.fail(text("its header would have {} bytes, but the file has {}", length, file.bytes()));
  if (length > kMaxHeader) reader.fail(text("its header has {} bytes; the maximum is {}", length, kMaxHeader));
  std::string bytes(length, '\0');
  file.read_at(sizeof length, std::as_writable_bytes(std::span(bytes.data(), bytes.size())));
  SafetensorsHeader out{sizeof length + length, {}, {}};
  const Json header = reader.parse(bytes);
  for (const auto& [name, value] : header.items()) {
    if (name == kMetadata) {
      reader.check_metadata(value);
    } else {
      reader.add(name, value, out);
    }
  }
  std::ranges::stable_sort(out.entries, {}, &TensorEntry::begin);
  reader.check_data(out, file.bytes() - out.bytes);
  return out;
}

} // namespace triax::checkpoint
