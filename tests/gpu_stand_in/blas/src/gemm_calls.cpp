// SPDX-License-Identifier: Apache-2.0
// cuBLAS calls: handles, and products of matrices.
#include <cublas_v2.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "blas_call.hpp"

namespace triax::gpu_stand_in {

namespace {

constexpr std::size_t kWorkspaceAlignment = 256; // cublasSetWorkspace()

struct Blas {
  int device = 0;
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
};

struct Handles {
  std::mutex mutex;
  std::map<cublasHandle_t, std::unique_ptr<Blas>> live;
};
Handles& handles() {
  static Handles& all = *new Handles;
  return all;
}

Blas& get(cublasHandle_t handle) {
  std::lock_guard lock(handles().mutex);
  const auto found = handles().live.find(handle);
  if (found == handles().live.end()) {
    throw BlasError(CUBLAS_STATUS_NOT_INITIALIZED, "the handle was not created, or was destroyed");
  }
  if (found->second->device != current_device()) {
    invalid("the handle is GPU " + std::to_string(found->second->device) + "'s, and the current device is GPU " +
            std::to_string(current_device()));
  }
  return *found->second;
}

struct Operand {
  Matrix matrix;
  bool transposed = false;
  std::int64_t stride = 0; // elements from a matrix of the batch to the next
};

struct Gemm {
  Operand a, b, c;
  std::int64_t m = 0, n = 0, k = 0, batch = 0;
  float alpha = 1, beta = 0;
  Blas blas;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
};

Matrix at(const Operand& operand, std::int64_t index) {
  Matrix matrix = operand.matrix;
  const auto bytes = static_cast<std::int64_t>(bytes_of(matrix.type));
  matrix.address = static_cast<const std::byte*>(matrix.address) + index * operand.stride * bytes;
  return matrix;
}

bool is_transposed(cublasOperation_t operation) {
  if (operation == CUBLAS_OP_N || operation == CUBLAS_OP_T) return operation == CUBLAS_OP_T;
  unknown("operation " + std::to_string(operation));
}

Operand operand_of(cublasOperation_t operation, const void* address, cudaDataType type, std::int64_t rows,
                   std::int64_t columns, std::int64_t leading, std::int64_t stride) {
  const bool transposed = is_transposed(operation);
  if (transposed) std::swap(rows, columns);
  return {{address, type, rows, columns, leading}, transposed, stride};
}

void check_types(const Gemm& g) {
  const cublasComputeType_t compute = g.compute;
  if (compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_FAST_TF32) {
    unknown("compute type " + std::to_string(compute));
  }
  const cudaDataType in = g.a.matrix.type, out = g.c.matrix.type;
  // The table of cublasGemmEx() for CUBLAS_COMPUTE_32F: A and B alike; C as they are, or f32.
  if (!is_known_type(in) || in != g.b.matrix.type || (out != in && out != CUDA_R_32F)) {
    throw BlasError(CUBLAS_STATUS_NOT_SUPPORTED, "cuBLAS has no product of " + name_of(in) + " and " +
                                                     name_of(g.b.matrix.type) + " to " + name_of(out));
  }
}

// Two elements of the batch in C are one. Matrices may be interleaved: the heads of attention are.
bool overlaps_itself(const Gemm& g) {
  const Matrix& c = g.c.matrix;
  if (g.batch == 1) return false;
  const std::int64_t span = (c.columns - 1) * c.leading + c.rows;
  if (g.c.stride >= span) return false;
  if (g.c.stride >= c.rows && (g.batch - 1) * g.c.stride + c.rows <= c.leading) return false;
  std::vector<std::int64_t> columns; // where they begin
  for (std::int64_t index = 0; index < g.batch; ++index) {
    for (std::int64_t n = 0; n < c.columns; ++n) columns.push_back(index * g.c.stride + n * c.leading);
  }
  std::ranges::sort(columns);
  const auto near = std::ranges::adjacent_find(columns, [&](auto x, auto y) { return y - x < c.rows; });
  return near != columns.end();
}

void check(const Gemm& g) {
  check_leading(g.a.matrix, "A");
  check_leading(g.b.matrix, "B");
  check_leading(g.c.matrix, "C");
  if (overlaps_itself(g)) {
    invalid("matrices of the batch in C overlap: the stride is " + std::to_string(g.c.stride) +
            " elements, and the leading dimension " + std::to_string(g.c.matrix.leading));
  }
  for (const std::int64_t index : {std::int64_t{0}, g.batch - 1}) {
    const Matrix c = at(g.c, index);
    for (const auto& [operand, name] : {std::pair(&g.a, "A"), std::pair(&g.b, "B")}) {
      const Matrix in = at(*operand, index);
      if (g.k > 0) check_memory(g.blas.device, in.address, in.bytes(), bytes_of(in.type), name);
      if (g.k > 0) check_apart(c, in, name);
    }
    check_memory(g.blas.device, c.address, c.bytes(), bytes_of(c.type), "C");
  }
}

std::vector<float> read_operand(int device, const Operand& operand, std::int64_t index, const char* name) {
  const Matrix matrix = at(operand, index);
  std::vector<float> values = read_matrix(device, matrix, std::string("cublasGemm: ") + name);
  return operand.transposed ? transpose(values, matrix.rows, matrix.columns) : values;
}

void run(const Gemm& g, std::int64_t index) {
  const int device = g.blas.device;
  const auto sums =
      multiply(read_operand(device, g.a, index, "A"), read_operand(device, g.b, index, "B"), g.m, g.n, g.k);
  const Matrix c = at(g.c, index);
  const std::vector<float> before =
      g.beta == 0 ? std::vector<float>(sums.size()) : read_matrix(device, c, "cublasGemm: C");
  const std::size_t width = bytes_of(c.type);
  auto* column = static_cast<std::byte*>(const_cast<void*>(c.address));
  for (std::int64_t n = 0; n < g.n; ++n) {
    std::byte* data = data_to_write(device, column, static_cast<std::size_t>(g.m) * width, "cublasGemm: C");
    for (std::int64_t m = 0; m < g.m; ++m) {
      const double value = g.alpha * sums[n * g.m + m] + (g.beta == 0 ? 0.0 : g.beta * before[n * g.m + m]);
      from_float(c.type, data + m * width, static_cast<float>(value));
    }
    column += c.leading * static_cast<std::int64_t>(width);
  }
}

void submit_gemm(const Gemm& g) {
  submit_product(g.blas.stream, "cublasGemmStridedBatchedEx", [g] {
    spoil_workspace(g.blas.device, g.blas.workspace, g.blas.workspace_bytes);
    for (std::int64_t index = 0; index < g.batch; ++index) run(g, index);
    const std::size_t accesses_of_c = g.beta == 0 ? 1 : 2;
    const std::size_t bytes =
        g.a.matrix.element_bytes() + g.b.matrix.element_bytes() + accesses_of_c * g.c.matrix.element_bytes();
    count_product(g.a.matrix.type, g.compute, {g.m, g.n, g.k, g.batch}, static_cast<std::size_t>(g.batch) * bytes);
  });
}

} // namespace

} // namespace triax::gpu_stand_in

using namespace triax::gpu_stand_in; // calls of cuBLAS have its global names

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  return blas_call("cublasCreate", [&] {
    auto made = std::make_unique<Blas>();
    made->device = current_device();
    *handle = reinterpret_cast<cublasHandle_t>(made.get());
    std::lock_guard lock(handles().mutex);
    handles().live[*handle] = std::move(made);
  });
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  return blas_call("cublasDestroy", [&] {
    std::lock_guard lock(handles().mutex);
    if (handles().live.erase(handle) == 0) {
      throw BlasError(CUBLAS_STATUS_NOT_INITIALIZED, "the handle was not created, or was destroyed");
    }
  });
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  return blas_call("cublasSetStream", [&] {
    Blas& blas = get(handle);
    check_stream(stream);
    blas = {blas.device, stream, nullptr, 0}; // as documented, resets the workspace
  });
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, std::size_t bytes) {
  return blas_call("cublasSetWorkspace", [&] {
    Blas& blas = get(handle);
    check_memory(blas.device, workspace, bytes, kWorkspaceAlignment, "the workspace");
    blas.workspace = workspace;
    blas.workspace_bytes = bytes;
  });
}

// The known modes change speed and rounding on a GPU. The sums here are in double, in one order.
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  return blas_call("cublasSetMathMode", [&] {
    get(handle);
    const int kind = mode & ~CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
    if (kind != CUBLAS_DEFAULT_MATH && kind != CUBLAS_PEDANTIC_MATH && kind != CUBLAS_TF32_TENSOR_OP_MATH) {
      unknown("math mode " + std::to_string(mode));
    }
  });
}

cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode) {
  return blas_call("cublasSetAtomicsMode", [&] {
    get(handle);
    if (mode != CUBLAS_ATOMICS_NOT_ALLOWED && mode != CUBLAS_ATOMICS_ALLOWED) {
      unknown("atomics mode " + std::to_string(mode));
    }
  });
}

cublasStatus_t cublasGemmStridedBatchedEx_64(cublasHandle_t handle, cublasOperation_t operation_a,
                                             cublasOperation_t operation_b, std::int64_t m, std::int64_t n,
                                             std::int64_t k, const void* alpha, const void* a, cudaDataType type_a,
                                             std::int64_t leading_a, long long stride_a, const void* b,
                                             cudaDataType type_b, std::int64_t leading_b, long long stride_b,
                                             const void* beta, void* c, cudaDataType type_c, std::int64_t leading_c,
                                             long long stride_c, std::int64_t batch, cublasComputeType_t compute,
                                             cublasGemmAlgo_t algorithm) {
  return blas_call("cublasGemmStridedBatchedEx", [&] {
    const Blas& blas = get(handle);
    check_stream(blas.stream);
    if (m < 0 || n < 0 || k < 0 || batch < 0) invalid("a size is negative");
    if (!alpha || !beta) invalid("alpha or beta is null");
    if (algorithm != CUBLAS_GEMM_DEFAULT && algorithm != CUBLAS_GEMM_DEFAULT_TENSOR_OP) {
      unknown("algorithm " + std::to_string(algorithm));
    }
    const Gemm g{operand_of(operation_a, a, type_a, m, k, leading_a, stride_a),
                 operand_of(operation_b, b, type_b, k, n, leading_b, stride_b),
                 {{c, type_c, m, n, leading_c}, false, stride_c},
                 m,
                 n,
                 k,
                 batch,
                 *static_cast<const float*>(alpha),
                 *static_cast<const float*>(beta),
                 blas,
                 compute};
    check_types(g);
    if (m == 0 || n == 0 || batch == 0) return;
    check(g);
    submit_gemm(g);
  });
}

} // extern "C"
