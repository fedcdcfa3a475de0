// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/tensor_reader.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <system_error>
#include <utility>

#include "base/caught_error.hpp"
#include "checkpoint/folder.hpp"
#include "checksum/checksum.hpp"

namespace triax::checkpoint {

namespace {

constexpr std::size_t kBuffer = std::size_t{8} << 20; // at most: small tensors need less
/// Ranks as threads share the process's limit, and a checkpoint has two files for each rank that wrote it.
constexpr std::size_t kMaxOpenFiles = 16;

/// The common part of two boxes.
struct Overlap {
  Shape begin, size;
  bool is_empty = false;
};

Overlap overlap_of(const Piece& piece, const Shape& begin, const Shape& size) {
  Overlap out{begin, size};
  for (int dim = 0; dim < begin.rank(); ++dim) {
    out.begin[dim] = std::max(begin[dim], piece.begin[dim]);
    const std::int64_t end = std::min(begin[dim] + size[dim], piece.begin[dim] + piece.size[dim]);
    out.size[dim] = std::max<std::int64_t>(end - out.begin[dim], 0);
  }
  out.is_empty = out.size.elements() == 0;
  return out;
}

/// Element number of a position, in a box in row-major order.
std::int64_t element(const Shape& position, const Shape& begin, const Shape& size) {
  std::int64_t out = 0;
  for (int dim = 0; dim < size.rank(); ++dim) out = out * size[dim] + (position[dim] - begin[dim]);
  return out;
}

/// Reads from one range of a file through a buffer, because runs may be short.
class Window {
 public:
  Window(const os::InputFile& file, std::uint64_t begin, std::uint64_t end, std::vector<std::byte>& buffer)
      : file_(file), end_(end), at_(begin), buffer_(buffer) {}

  void read(std::uint64_t offset, std::span<std::byte> out) {
    if (out.size() >= kBuffer) return file_.read_at(offset, out);
    if (offset < at_ || offset + out.size() > at_ + filled_) {
      at_ = offset;
      filled_ = std::min<std::uint64_t>(kBuffer, end_ - offset);
      file_.read_at(at_, std::span(buffer_).first(filled_));
    }
    std::memcpy(out.data(), buffer_.data() + (offset - at_), out.size());
  }

 private:
  const os::InputFile& file_;
  const std::uint64_t end_;
  std::uint64_t at_, filled_ = 0;
  std::vector<std::byte>& buffer_;
};

} // namespace

std::span<const TensorReader::PieceOfTensor> TensorReader::Contents::pieces_of(const std::string& file) const {
  const auto found = pieces.find(file);
  if (found == pieces.end()) return {};
  return found->second;
}

std::shared_ptr<const TensorReader::Contents> TensorReader::read_contents(const std::filesystem::path& folder) {
  auto out = std::make_shared<Contents>();
  out->manifest = read_manifest(folder / kManifestFile);
  for (const SavedTensor& tensor : out->manifest.content.tensors) {
    out->tensors[{tensor.parameter, tensor.state}] = &tensor;
    for (const Piece& piece : tensor.pieces) out->pieces[piece.file].push_back({&tensor, &piece});
  }
  return out;
}

TensorReader::TensorReader(std::filesystem::path folder, std::shared_ptr<const Contents> contents)
    : folder_(std::move(folder)), contents_(std::move(contents)), damaged_(damaged_hint(folder_)) {}

TensorReader::TensorReader(std::filesystem::path folder) : TensorReader(folder, read_contents(folder)) {}

const SavedTensor* TensorReader::find(const std::string& parameter, const std::string& state) const {
  const auto found = contents_->tensors.find({parameter, state});
  return found == contents_->tensors.end() ? nullptr : found->second;
}

/// A run that trains removes older checkpoints.
void TensorReader::require_folder() const {
  std::error_code unknown;
  if (std::filesystem::exists(folder_ / kManifestFile, unknown) || unknown) return;
  throw Error("was removed while it was read: a run keeps its newest checkpoints only (checkpoint.keep)",
              folder_.string(), "repeat the command for a newer one");
}

TensorReader::OpenFile& TensorReader::open(const std::string& name) {
  const auto [found, is_new] = files_.try_emplace(name);
  OpenFile& out = found->second;
  if (out.file) return out;
  const std::filesystem::path path = folder_ / name;
  if (open_.size() == kMaxOpenFiles) {
    open_.front()->file.reset(); // its header stays
    open_.pop_front();
  }
  try {
    require_folder();
    out.file.emplace(path, damaged_);
    if (is_new) {
      SafetensorsHeader header = read_header(*out.file, path);
      out.data = header.bytes;
      for (TensorEntry& entry : header.entries) out.entries.insert({entry.name, entry});
    }
  } catch (...) {
    files_.erase(found);
    throw;
  }
  open_.push_back(&out);
  return out;
}

const TensorEntry& TensorReader::entry_of(OpenFile& file, const SavedTensor& tensor, const Piece& piece) const {
  const auto found = file.entries.find(piece.key);
  const std::string path = (folder_ / piece.file).string();
  if (found == file.entries.end()) throw Error(text("has no tensor \"{}\"", piece.key), path, damaged_);
  if (found->second.dtype != tensor.dtype || !(found->second.shape == piece.size))
    throw Error(
        text("tensor \"{}\" is {}{}, but the manifest says {}{}", piece.key, triax::name_of(found->second.dtype),
             to_text(found->second.shape), triax::name_of(tensor.dtype), to_text(piece.size)),
        path, damaged_);
  return found->second;
}

void TensorReader::use_buffer(std::uint64_t bytes) {
  if (bytes > buffer_.size()) buffer_.resize(std::min<std::uint64_t>(bytes, kBuffer));
}

void TensorReader::read(const SavedTensor& tensor, const Shape& begin, const Shape& size, std::byte* out) {
  for (int dim = 0; dim < tensor.shape.rank(); ++dim)
    TRIAX_REQUIRE(begin[dim] >= 0 && begin[dim] + size[dim] <= tensor.shape[dim], "{}: a box outside of {}",
                  name_of(tensor), to_text(tensor.shape));
  for (const Piece& piece : tensor.pieces) copy(tensor, piece, begin, size, out); // they make up the whole
}

void TensorReader::copy(const SavedTensor& tensor, const Piece& piece, const Shape& begin, const Shape& size,
                        std::byte* out) {
  const Overlap common = overlap_of(piece, begin, size);
  if (common.is_empty) return;
  OpenFile& file = open(piece.file);
  const TensorEntry& entry = entry_of(file, tensor, piece);
  const std::uint64_t data = file.data + entry.begin;
  const std::size_t width = bytes_of(tensor.dtype);
  const int rank = size.rank();
  Shape last = common.begin;
  for (int dim = 0; dim < rank; ++dim) last[dim] += common.size[dim] - 1;
  const std::uint64_t end = data + static_cast<std::uint64_t>(element(last, piece.begin, piece.size) + 1) * width;
  use_buffer(end - data);
  Window window(*file.file, data, end, buffer_); // not beyond the box: the next box would read that again
  // Dimensions from `inner` on are complete in both boxes, so that the elements of one index before them are a run.
  int inner = rank;
  while (inner > 0 && (inner == rank || (common.size[inner] == size[inner] && common.size[inner] == piece.size[inner])))
    --inner;
  std::int64_t run = 1;
  for (int dim = inner; dim < rank; ++dim) run *= common.size[dim];
  Shape position = common.begin;
  for (std::int64_t done = 0; done < common.size.elements(); done += run) {
    const auto from = static_cast<std::uint64_t>(element(position, piece.begin, piece.size)) * width;
    std::byte* const to = out + static_cast<std::size_t>(element(position, begin, size)) * width;
    window.read(data + from, std::span(to, static_cast<std::size_t>(run) * width));
    for (int dim = inner - 1; dim >= 0; --dim) {
      if (++position[dim] < common.begin[dim] + common.size[dim]) break;
      position[dim] = common.begin[dim];
    }
  }
}

std::vector<Error> TensorReader::verify(std::size_t first, std::size_t step, const StopRequest& stop,
                                        const std::string& state) {
  std::vector<Error> problems;
  const std::vector<const SavedFile*> files = files_with(state);
  for (std::size_t i = first; i < files.size() && !is_stopped(stop); i += step) verify_file(*files[i], problems, stop);
  return problems;
}

std::vector<const SavedFile*> TensorReader::files_with(const std::string& state) const {
  std::set<std::string> names;
  for (const SavedTensor& tensor : manifest().content.tensors)
    if (tensor.state == state)
      for (const Piece& piece : tensor.pieces) names.insert(piece.file);
  std::vector<const SavedFile*> out;
  for (const SavedFile& file : manifest().content.files)
    if (state.empty() || names.contains(file.name)) out.push_back(&file);
  return out;
}

void TensorReader::verify_file(const SavedFile& saved, std::vector<Error>& problems, const StopRequest& stop) {
  const std::string path = (folder_ / saved.name).string();
  const auto guarded = [&problems](const auto& body) {
    try {
      body();
      return true;
    } catch (...) {
      problems.push_back(caught_error());
      return false;
    }
  };
  const bool opened = guarded([&] {
    require_folder();
    const os::InputFile file(path, damaged_);
    if (file.bytes() != saved.bytes)
      throw Error(text("has {} bytes, expected {}", file.bytes(), saved.bytes), path, damaged_);
    OpenFile& open_file = open(saved.name);
    std::vector<std::byte> header(open_file.data);
    open_file.file->read_at(0, header);
    Checksum checksum;
    checksum.add(header);
    if (checksum.text() != saved.header_checksum) throw Error("checksum mismatch in the header", path, damaged_);
  });
  if (!opened) return;
  guarded([&] { check_named(open(saved.name), saved); });
  for (const PieceOfTensor& of : contents_->pieces_of(saved.name))
    if (!is_stopped(stop)) guarded([&] { verify_piece(open(saved.name), *of.tensor, *of.piece, stop); });
}

/// Bytes of a tensor that no piece names have no checksum.
void TensorReader::check_named(const OpenFile& file, const SavedFile& saved) const {
  std::set<std::string> named;
  for (const PieceOfTensor& of : contents_->pieces_of(saved.name)) named.insert(of.piece->key);
  for (const auto& [key, entry] : file.entries)
    if (!named.contains(key))
      throw Error(text("tensor \"{}\" is not in {}", key, kManifestFile), (folder_ / saved.name).string(), damaged_);
}

void TensorReader::verify_piece(OpenFile& file, const SavedTensor& tensor, const Piece& piece,
                                const StopRequest& stop) {
  const TensorEntry& entry = entry_of(file, tensor, piece);
  use_buffer(entry.bytes());
  Checksum checksum;
  for (std::uint64_t at = 0; at < entry.bytes(); at += kBuffer) {
    if (is_stopped(stop)) return;
    const std::span<std::byte> chunk = std::span(buffer_).first(std::min<std::uint64_t>(kBuffer, entry.bytes() - at));
    file.file->read_at(file.data + entry.begin + at, chunk);
    checksum.add(chunk);
  }
  if (checksum.text() != piece.checksum)
    throw Error(text("checksum mismatch in tensor \"{}\"", piece.key), (folder_ / piece.file).string(), damaged_);
}

} // namespace triax::checkpoint
