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

struct NamedType {
  DType type;
  std::string_view name;
};
constexpr std::array<NamedType, 7> kTypes = {{{DType::f32, "F32"},
                                              {DType::f64, "F64"},
                                              {DType::bf16, "BF16"},
                                              {DType::f16, "F16"},
                                              {DType::i32, "I32"},
                                              {DType::i64, "I64"},
                                              {DType::u8, "U8"}}};

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
    const JsonProblem problem = parse_strict(bytes, header);
    if (!problem.key.empty()) fail(problem.key, "is in the header twice");
    if (!problem.message.empty()) fail("the header " + problem.message);
    return header;
  }

  TensorEntry entry(const std::string& name, const Json& value) const {
    if (!value.is_object() || !value.contains("dtype") || !value.contains("shape") || !value.contains("data_offsets"))
      fail(name, "needs dtype, shape and data_offsets");
    const Json &type = value["dtype"], &shape = value["shape"], &offsets = value["data_offsets"];
    if (!type.is_string()) fail(name, "dtype is not a text");
    const std::optional<DType> known = type_of_safetensors(type.get<std::string>());
    if (!known) fail(name, text("dtype \"{}\" is not supported", shortened(printable(type.get<std::string>()))));
    const std::optional<Shape> sizes = shape_of(shape);
    if (!sizes) fail(name, text("its shape is not a list of at most {} sizes", kMaxRank));
    TensorEntry out{name, *known, *sizes, 0};
    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
        !offsets[1].is_number_unsigned())
      fail(name, "data_offsets are not two offsets");
    out.begin = offsets[0].get<std::uint64_t>();
    const auto end = offsets[1].get<std::uint64_t>();
    if (end < out.begin || end - out.begin != out.bytes()) fail(name, "data_offsets do not fit its shape and dtype");
    return out;
  }

 private:
  const std::filesystem::path& path_;
};

} // namespace

std::optional<DType> type_of_safetensors(std::string_view name) {
  for (const NamedType& type : kTypes)
    if (type.name == name) return type.type;
  return std::nullopt;
}

std::string_view safetensors_name(DType type) {
  return std::ranges::find(kTypes, type, &NamedType::type)->name;
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
  if (length > kMaxHeader || length > file.bytes() - sizeof length)
    reader.fail(text("its header would have {} bytes, and the file has {}", length, file.bytes()));
  std::string bytes(length, '\0');
  file.read_at(sizeof length, std::as_writable_bytes(std::span(bytes.data(), bytes.size())));
  SafetensorsHeader out{sizeof length + length, {}};
  const Json header = reader.parse(bytes);
  for (const auto& [name, value] : header.items())
    if (name != kMetadata) out.entries.push_back(reader.entry(name, value));
  std::ranges::stable_sort(out.entries, {}, &TensorEntry::begin);
  std::uint64_t at = 0;
  for (const TensorEntry& entry : out.entries) {
    if (entry.begin != at) reader.fail(entry.name, text("its data begins at byte {}, and not at {}", entry.begin, at));
    at += entry.bytes();
  }
  if (at != file.bytes() - out.bytes)
    reader.fail(text("has {} bytes of data, and its header names {}", file.bytes() - out.bytes, at));
  return out;
}

} // namespace triax::checkpoint
