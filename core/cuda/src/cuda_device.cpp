// SPDX-License-Identifier: Apache-2.0
// The CUDA device: a GPU as a rank's device.
#include "triax/cuda/cuda_device.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/scaled_text.hpp"
#include "copy_plan.hpp"
#include "cuda_memory.hpp"
#include "cuda_movement.hpp"
#include "cuda_recording.hpp"
#include "cuda_stream.hpp"
#include "device/movement.hpp" // of the core: checks of views, and rounding of fill values
#include "triax/cuda/cuda_check.hpp"
#include "triax/lazy_load_guard.hpp"

namespace triax::cuda {

namespace {

CudaStream& as_cuda_stream(Stream& stream) {
  auto* cuda_stream = dynamic_cast<CudaStream*>(&stream);
  TRIAX_REQUIRE(cuda_stream, "stream \"{}\" does not belong to a CUDA device", stream.name());
  return *cuda_stream;
}

/// For pageable memory (not allocated by CUDA), cudaMemcpyAsync may block until earlier work of the stream is done.
bool pageable(const void* data) {
  cudaPointerAttributes attributes{};
  TRIAX_CUDA(cudaPointerGetAttributes(&attributes, data));
  return attributes.type == cudaMemoryTypeUnregistered;
}

class CudaDevice final : public Device, public Recorder, public LazyLoadGuard {
 public:
  CudaDevice(int gpu, const DeviceSettings& settings)
      : gpu_(make_current(gpu)), flags_(settings.host_waits == DeviceSettings::HostWaits::automatic, *this) {}

  DeviceKind kind() const noexcept override { return DeviceKind::cuda; }

  std::string description() const override {
    cudaDeviceProp properties{};
    TRIAX_CUDA(cudaGetDeviceProperties(&properties, gpu_));
    return text("{} (GPU {} of this machine), compute capability {}.{}, {}; {}", properties.name, gpu_,
                properties.major, properties.minor, scaled_text(static_cast<double>(properties.totalGlobalMem), "B"),
                flags_.usable() ? text("streams wait for host work by stream memory operations (up to {} streams)",
                                       flags_.max_streams())
                                : "the host launches work only when earlier host work is done");
  }

  std::unique_ptr<Memory> allocate(std::size_t bytes, MemoryKind kind) override {
    switch (kind) {
      case MemoryKind::device:
        return std::make_unique<DeviceMemory>(bytes, flags_);
      case MemoryKind::pinned:
        return std::make_unique<PinnedMemory>(bytes, &flags_);
      case MemoryKind::host:
        return std::make_unique<PlainMemory>(bytes);
    }
    throw Error(text("unknown memory kind {}", static_cast<int>(kind)));
  }

  std::unique_ptr<Stream> make_stream(std::string name) override {
    return std::make_unique<CudaStream>(std::move(name), *this, flags_);
  }

  void copy(const TensorView& to, const TensorView& from, Stream& stream) override {
    device::check_movement("copy", to, from, true);
    if (to.elements() > 0) copy_checked(to, from, as_cuda_stream(stream).native_for_enqueue());
  }

  void upload(const TensorView& to, const TensorView& host_from, Stream& stream) override {
    device::check_movement("upload", to, host_from, true);
    copy_host_device(to, host_from, host_from.data(), cudaMemcpyHostToDevice, as_cuda_stream(stream));
  }

  void download(const TensorView& host_to, const TensorView& from, Stream& stream) override {
    device::check_movement("download", host_to, from, true);
    copy_host_device(host_to, from, host_to.data(), cudaMemcpyDeviceToHost, as_cuda_stream(stream));
  }

  void fill(const TensorView& to, double value, Stream& stream) override {
    if (to.elements() == 0) return;
    std::uint64_t element = 0;
    // Rounds the value on the host, so that it equals the result of the host device.
    device::fill_elements({&element, to.dtype(), {1}}, value);
    const auto first = static_cast<unsigned char>(element & 0xFF);
    unsigned char bytes[sizeof element];
    std::memcpy(bytes, &element, sizeof bytes);
    const bool bytes_equal =
        std::all_of(bytes, bytes + bytes_of(to.dtype()), [first](unsigned char byte) { return byte == first; });
    const cudaStream_t native = as_cuda_stream(stream).native_for_enqueue();
    if (bytes_equal && to.contiguous()) {
      TRIAX_CUDA(cudaMemsetAsync(to.data(), first, to.bytes(), native));
    } else {
      launch_fill(to, element, native);
    }
  }

  void convert(const TensorView& to, const TensorView& from, Stream& stream) override {
    device::check_movement("convert", to, from, false);
    if (to.elements() == 0) return;
    const cudaStream_t native = as_cuda_stream(stream).native_for_enqueue();
    to.dtype() == from.dtype() ? copy_checked(to, from, native) : launch_convert(to, from, native);
  }

  void add(const TensorView& to, const TensorView& from, Stream& stream) override {
    device::check_add(to, from);
    if (to.elements() > 0) launch_add(to, from, as_cuda_stream(stream).native_for_enqueue());
  }

  void begin_recording(Stream& stream) override {
    TRIAX_REQUIRE(!recorded_, "a recording has begun already, on stream \"{}\"", recorded_->name());
    try {
      for (Stream* each : streams()) as_cuda_stream(*each).start_recording();
    } catch (...) { // a stream failed to start; stop those that already record
      stop_recording();
      throw;
    }
    recorded_ = &as_cuda_stream(stream);
    // Relaxed mode: during capture, this thread still queries events of earlier steps, and other threads call CUDA.
    const cudaError_t begun = cudaStreamBeginCapture(recorded_->native_for_enqueue(), cudaStreamCaptureModeRelaxed);
    if (begun != cudaSuccess) stop_recording();
    TRIAX_CUDA(begun);
  }
  std::unique_ptr<Recording> end_recording() override {
    TRIAX_REQUIRE(recorded_, "no recording has begun");
    cudaGraph_t captured = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(recorded_->native_for_enqueue(), &captured);
    stop_recording();
    TRIAX_CUDA(ended);
    return std::make_unique<CudaRecording>(captured);
  }

  void set_may_load_modules(bool may_load) noexcept override { flags_.set_paused(may_load); }
  void* extension(std::string_view id) noexcept override {
    if (id == Recorder::kExtension) return static_cast<Recorder*>(this);
    return id == LazyLoadGuard::kExtension ? static_cast<LazyLoadGuard*>(this) : nullptr;
  }

 private:
  void stop_recording() noexcept {
    // streams() holds only CudaStream; dynamic_cast could throw in this noexcept function.
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-static-cast-downcast)
    for (Stream* each : streams()) static_cast<CudaStream*>(each)->stop_recording();
    recorded_ = nullptr;
  }

  static int make_current(int gpu) {
    TRIAX_CUDA(cudaSetDevice(gpu));
    return gpu;
  }

  static void copy_checked(const TensorView& to, const TensorView& from, cudaStream_t native) {
    if (to.contiguous() && from.contiguous()) {
      if (to.data() != from.data())
        TRIAX_CUDA(cudaMemcpyAsync(to.data(), from.data(), to.bytes(), cudaMemcpyDefault, native));
    } else {
      launch_copy(to, from, native);
    }
  }

  /// Copies between host and device.
  static void copy_host_device(const TensorView& to, const TensorView& from, const void* host, cudaMemcpyKind direction,
                               CudaStream& stream) {
    if (to.elements() == 0) return;
    if (pageable(host)) stream.wait_for_work(); // the call may block, and only this thread can set flags
    const CopyPieces pieces(to, from);
    for (std::int64_t number = 0; number < pieces.count(); ++number) {
      const CopyPiece piece = pieces[number];
      const cudaStream_t native = stream.native_for_enqueue(); // ask again: each piece is a separate enqueue
      std::byte* piece_to = to.as<std::byte>() + piece.to;
      const std::byte* piece_from = from.as<const std::byte>() + piece.from;
      if (piece.rows == 1) {
        TRIAX_CUDA(cudaMemcpyAsync(piece_to, piece_from, piece.width, direction, native));
      } else {
        TRIAX_CUDA(cudaMemcpy2DAsync(piece_to, piece.to_pitch, piece_from, piece.from_pitch, piece.width, piece.rows,
                                     direction, native));
      }
    }
  }

  int gpu_;
  HostFlags flags_;
  CudaStream* recorded_ = nullptr; // not null during capture
};

} // namespace

std::unique_ptr<Device> make_device(const DeviceRequest& request, const DeviceSettings& settings) {
  if (const Refusals answer = available(request); !answer.empty()) throw to_error(answer);
  return std::make_unique<CudaDevice>(request.local_rank, settings);
}

} // namespace triax::cuda
