// SPDX-License-Identifier: Apache-2.0
#include "fat_binary.hpp"

#include <cstring>

namespace triax::gpu_stand_in {

namespace {

constexpr std::uint32_t kMagic = 0xBA55ED50;
constexpr std::uint64_t kCompressedLz4 = 0x2000, kCompressedZstd = 0x8000;

struct FileHeader {
  std::uint32_t magic;
  std::uint16_t version, header_bytes;
  std::uint64_t bytes; // behind the header
};

enum class Kind : std::uint16_t { kPtx = 1, kCubin = 2 };

struct EntryHeader {
  Kind kind;
  std::uint16_t version;
  std::uint32_t header_bytes;
  std::uint64_t bytes; // behind the header
  std::uint32_t compressed_bytes, unknown;
  std::uint16_t minor, major;
  std::uint32_t architecture;
  std::uint32_t name_offset, name_bytes;
  std::uint64_t flags;
};
static_assert(sizeof(EntryHeader) == 48);

template <class T>
T read_at(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::string architecture_text(std::uint32_t architecture) {
  return std::to_string(architecture / 10) + "." + std::to_string(architecture % 10);
}

} // namespace

FatBinary read_fat_binary(const std::byte* data, int architecture) {
  const auto header = read_at<FileHeader>(data);
  if (header.magic != kMagic || header.version != 1 || header.header_bytes < sizeof(FileHeader)) {
    throw FatBinaryError("a fat binary of unknown format (magic number and version)");
  }
  FatBinary chosen;
  std::uint32_t cubin_architecture = 0;
  std::string others;
  const std::byte* const end = data + header.header_bytes + header.bytes;
  for (const std::byte* at = data + header.header_bytes; at + sizeof(EntryHeader) <= end;) {
    const auto entry = read_at<EntryHeader>(at);
    const std::byte* const body = at + entry.header_bytes;
    if (entry.header_bytes < sizeof(EntryHeader) || entry.bytes > static_cast<std::uint64_t>(end - body)) {
      throw FatBinaryError("a fat binary of unknown format (an entry is longer than the file)");
    }
    at = body + entry.bytes;
    const auto limit = static_cast<std::uint32_t>(architecture);
    const bool compressed = (entry.flags & (kCompressedLz4 | kCompressedZstd)) != 0;
    if (entry.kind == Kind::kPtx && entry.architecture <= limit) {
      if (compressed) {
        throw FatBinaryError(
            "the PTX is compressed: build with the nvcc flag --no-compress "
            "(cmake: -DCMAKE_CUDA_FLAGS=--no-compress)");
      }
      if (chosen.architecture >= static_cast<int>(entry.architecture)) continue;
      const auto* text = reinterpret_cast<const char*>(body);
      chosen.ptx = {text, strnlen(text, entry.bytes)};
      chosen.architecture = static_cast<int>(entry.architecture);
    } else if (entry.kind == Kind::kCubin && entry.architecture <= limit && entry.architecture / 10 == limit / 10 &&
               entry.architecture > cubin_architecture && !compressed) {
      chosen.resources = read_cubin({body, entry.bytes});
      cubin_architecture = entry.architecture;
    } else {
      others += (entry.kind == Kind::kPtx ? " PTX " : " cubin ") + architecture_text(entry.architecture);
    }
  }
  if (!chosen.ptx.empty()) return chosen;
  throw FatBinaryError("there is no PTX for compute capability " + architecture_text(architecture) +
                       " or lower, only:" + others +
                       "; build with CMAKE_CUDA_ARCHITECTURES=" + std::to_string(architecture));
}

} // namespace triax::gpu_stand_in
