// SPDX-License-Identifier: Apache-2.0
// CUDA calls: copies and fills.
#include <cstring>

#include "capture.hpp"
#include "errors.hpp"
#include "pinned.hpp"
#include "settings.hpp"
#include "stream.hpp"

namespace triax::gpu_stand_in {

namespace {

struct Side {
  std::byte* address = nullptr;
  std::size_t pitch = 0;
  GpuDevice* owner = nullptr; // null: host memory
  bool pinned = false;

  bool pageable() const { return !owner && !pinned; }
  std::size_t span(std::size_t width, std::size_t rows) const { return pitch * (rows - 1) + width; }
};

struct Copy {
  const char* name;
  Side to, from;
  std::size_t width, rows;
};

Side side_of(const void* address, std::size_t pitch) {
  auto* bytes = static_cast<std::byte*>(const_cast<void*>(address));
  return {bytes, pitch, owner_of(address), pinned_memory().find(address).has_value()};
}

void check_range(const Side& side, std::size_t bytes, const char* what) {
  if (side.pageable()) return;
  const auto found = find_memory(side.address);
  const auto at = reinterpret_cast<std::uint64_t>(side.address);
  if (found && bytes <= found->allocation.bytes - (at - found->allocation.address)) return;
  throw CallError(cudaErrorInvalidValue, std::string(what) + " of " + std::to_string(bytes) +
                                             " bytes is not in one allocation: it begins at " +
                                             describe_memory(side.address));
}

void check_kind(const Copy& copy, cudaMemcpyKind kind) {
  constexpr const char* kNames[] = {"cudaMemcpyHostToHost", "cudaMemcpyHostToDevice", "cudaMemcpyDeviceToHost",
                                    "cudaMemcpyDeviceToDevice"};
  if (kind == cudaMemcpyDefault) return;
  if (kind < 0 || kind > cudaMemcpyDefault) throw CallError(cudaErrorInvalidMemcpyDirection);
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (to_device == (copy.to.owner != nullptr) && from_device == (copy.from.owner != nullptr)) return;
  throw CallError(cudaErrorInvalidValue, std::string(kNames[kind]) + ", but the copy is from " +
                                             describe_memory(copy.from.address) + " to " +
                                             describe_memory(copy.to.address));
}

// Host view of device memory when the stream reaches the copy: the allocation may have been freed since the call.
std::byte* resolve(const Copy& copy, const Side& side, const char* what) {
  if (!side.owner) return side.address;
  const auto at = reinterpret_cast<std::uint64_t>(side.address);
  const std::size_t bytes = side.span(copy.width, copy.rows);
  if (!side.owner->memory().contains(at, bytes)) {
    throw StreamError(cudaErrorIllegalAddress, std::string(copy.name) + ": the " + what + " of " +
                                                   std::to_string(bytes) +
                                                   " bytes is not in one allocation: " + describe_memory(side.address));
  }
  return side.owner->memory().alias(at);
}

// Between devices, the state "written" is copied with each byte. A copy to the host reads written bytes only.
void move_state(const Copy& copy, std::size_t row) {
  const auto to = reinterpret_cast<std::uint64_t>(copy.to.address + row * copy.to.pitch);
  const auto from = reinterpret_cast<std::uint64_t>(copy.from.address + row * copy.from.pitch);
  if (copy.to.owner && copy.from.owner) {
    std::memmove(copy.to.owner->memory().written(to), copy.from.owner->memory().written(from), copy.width);
  } else if (copy.to.owner) {
    copy.to.owner->memory().mark_written(to, copy.width);
  } else if (copy.from.owner) {
    const DeviceMemory& memory = copy.from.owner->memory();
    const auto unwritten = memory.first_unwritten(from, copy.width);
    if (!unwritten) return;
    throw StreamError(cudaErrorIllegalAddress, std::string(copy.name) + " to the host reads " +
                                                   memory.describe(*unwritten) + ", which was never written");
  }
}

void run_copy(const Copy& copy) {
  if (is_failure_planned("copy", current_device())) {
    throw StreamError(cudaErrorIllegalAddress, std::string(copy.name) + ": fails, because TRIAX_GPU_FAIL says so");
  }
  std::byte* to = resolve(copy, copy.to, "destination");
  const std::byte* from = resolve(copy, copy.from, "source");
  for (std::size_t row = 0; row < copy.rows; ++row) {
    std::memmove(to + row * copy.to.pitch, from + row * copy.from.pitch, copy.width);
    move_state(copy, row);
  }
  const std::string kind =
      std::string(copy.from.owner ? "device" : "host") + (copy.to.owner ? " to device" : " to host");
  const std::uint64_t sides = (copy.from.owner ? 1 : 0) + (copy.to.owner ? 1 : 0);
  count_library_call(copy.name + (", " + kind), 0, sides * copy.rows * copy.width);
}

void log_copy(const Copy& copy, const Stream& stream) {
  if (!settings().log) return;
  report(std::string(copy.name) + ": " + std::to_string(copy.rows) + " rows of " + std::to_string(copy.width) +
         " bytes from " + describe_memory(copy.from.address) + " to " + describe_memory(copy.to.address) + ", " +
         stream.name());
}

// Pageable memory: as CUDA may do, the call returns when the copy is done. Pinned memory is read and written when the
// stream reaches the copy.
void submit_copy(const Copy& copy, cudaMemcpyKind kind, cudaStream_t handle, bool synchronous) {
  if (copy.width == 0 || copy.rows == 0) return;
  if (!copy.to.address || !copy.from.address) throw CallError(cudaErrorInvalidValue, "an address is null");
  if (copy.rows > 1 && (copy.width > copy.to.pitch || copy.width > copy.from.pitch)) {
    throw CallError(cudaErrorInvalidPitchValue,
                    "rows of " + std::to_string(copy.width) + " bytes overlap, because pitches are " +
                        std::to_string(copy.to.pitch) + " and " + std::to_string(copy.from.pitch));
  }
  check_kind(copy, kind);
  check_range(copy.to, copy.to.span(copy.width, copy.rows), "the destination");
  check_range(copy.from, copy.from.span(copy.width, copy.rows), "the source");
  const StreamPtr stream = find_stream(handle);
  log_copy(copy, *stream);
  const bool waits = synchronous || copy.to.pageable() || copy.from.pageable();
  if (waits) require_no_capture(*stream, std::string(copy.name) + " of pageable memory");
  const int device = stream->device().number();
  const MarkerPtr done = submit(*stream, {copy.name, [copy, device]() -> Poll {
                                            set_current_device(device);
                                            run_copy(copy);
                                            return nullptr;
                                          }});
  if (!waits) return;
  done->wait();
  if (const cudaError_t sticky = stream->device().sticky(); sticky != cudaSuccess) throw CallError(sticky);
}

cudaError_t copy_bytes(const char* name, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                       cudaStream_t stream, bool synchronous) {
  return call(name, synchronous ? Check::kCapture : Check::kSticky, [&] {
    submit_copy({name, side_of(to, bytes), side_of(from, bytes), bytes, 1}, kind, stream, synchronous);
  });
}

cudaError_t fill(const char* name, void* address, int value, std::size_t bytes, cudaStream_t handle, bool synchronous) {
  return call(name, synchronous ? Check::kCapture : Check::kSticky, [&] {
    if (bytes == 0) return;
    const Copy copy{name, side_of(address, bytes), {}, bytes, 1};
    if (copy.to.pageable()) {
      throw CallError(cudaErrorInvalidValue, "cannot fill " + describe_memory(address));
    }
    check_range(copy.to, bytes, "the range");
    const StreamPtr stream = find_stream(handle);
    if (synchronous) require_no_capture(*stream, name);
    const MarkerPtr done = submit(*stream, {name, [copy, value]() -> Poll {
                                              std::memset(resolve(copy, copy.to, "range"), value, copy.width);
                                              if (!copy.to.owner) return nullptr;
                                              count_library_call(copy.name, 0, copy.width);
                                              const auto at = reinterpret_cast<std::uint64_t>(copy.to.address);
                                              copy.to.owner->memory().mark_written(at, copy.width);
                                              return nullptr;
                                            }});
    if (synchronous) done->wait();
  });
}

} // namespace

} // namespace triax::gpu_stand_in

using namespace triax::gpu_stand_in; // calls of CUDA have its global names

extern "C" {

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_bytes("cudaMemcpyAsync", to, from, bytes, kind, stream, false);
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return copy_bytes("cudaMemcpy", to, from, bytes, kind, nullptr, true);
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t rows, cudaMemcpyKind kind, cudaStream_t stream) {
  return call("cudaMemcpy2DAsync", Check::kSticky, [&] {
    constexpr std::size_t kMaxPitch = 0x7FFFFFFF; // cudaDeviceProp::memPitch
    if (to_pitch > kMaxPitch || from_pitch > kMaxPitch) {
      throw CallError(cudaErrorInvalidPitchValue, "pitches are " + std::to_string(to_pitch) + " and " +
                                                      std::to_string(from_pitch) + " bytes; at most " +
                                                      std::to_string(kMaxPitch) + " are allowed");
    }
    submit_copy({"cudaMemcpy2DAsync", side_of(to, to_pitch), side_of(from, from_pitch), width, rows}, kind, stream,
                false);
  });
}

cudaError_t cudaMemsetAsync(void* address, int value, std::size_t bytes, cudaStream_t stream) {
  return fill("cudaMemsetAsync", address, value, bytes, stream, false);
}

cudaError_t cudaMemset(void* address, int value, std::size_t bytes) {
  return fill("cudaMemset", address, value, bytes, nullptr, true);
}

} // extern "C"
