// SPDX-License-Identifier: Apache-2.0
// Writes token files in Megatron's format byte by byte, without the code under test.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "support/temp_folder.hpp"

namespace triax::test {

template <class T>
void append(std::string& bytes, T value) {
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  bytes.append(raw, sizeof raw);
}

/// The fields of an index; a test can change them before bytes() is called.
struct MegatronIndex {
  std::string magic = std::string("MMIDIDX\0\0", 9);
  std::uint64_t version = 1;
  std::uint8_t code = 0;
  std::vector<std::int32_t> sizes;
  std::vector<std::int64_t> pointers, documents;
  std::uint64_t sequence_count = 0, document_count = 0;

  MegatronIndex(std::uint8_t type_code, std::size_t width, std::vector<std::int32_t> sequence_sizes,
                std::vector<std::int64_t> document_indices)
      : code(type_code), sizes(std::move(sequence_sizes)), documents(std::move(document_indices)) {
    std::int64_t pointer = 0;
    for (const std::int32_t size : sizes) {
      pointers.push_back(pointer);
      pointer += size * static_cast<std::int64_t>(width);
    }
    sequence_count = sizes.size();
    document_count = documents.size();
  }

  std::string bytes() const {
    std::string out = magic;
    append(out, version);
    append(out, code);
    append(out, sequence_count);
    append(out, document_count);
    for (const auto size : sizes) append(out, size);
    for (const auto pointer : pointers) append(out, pointer);
    for (const auto document : documents) append(out, document);
    return out;
  }
};

template <class T>
std::string raw_bytes(const std::vector<T>& tokens) {
  std::string out;
  for (const T token : tokens) append(out, token);
  return out;
}

/// Writes PREFIX.bin and PREFIX.idx with one sequence and one document.
template <class T>
void write_tokens(const std::filesystem::path& prefix, std::uint8_t code, const std::vector<T>& tokens) {
  const MegatronIndex index(code, sizeof(T), {static_cast<std::int32_t>(tokens.size())}, {0, 1});
  write_file(prefix.string() + ".bin", raw_bytes(tokens));
  write_file(prefix.string() + ".idx", index.bytes());
}

} // namespace triax::test
