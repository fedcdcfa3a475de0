// SPDX-License-Identifier: Apache-2.0
// cuBLASLt calls: algorithms and products, with what the documentation of epilogues demands.
#include <cublasLt.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "blas_call.hpp"
#include "lt_descriptors.hpp"

namespace triax::gpu_stand_in {

namespace {

constexpr std::size_t kWorkspaceAlignment = 256; // cublasLtMatmul()
constexpr std::int64_t kAuxLeadingUnit = 8;      // CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD: divisible by 8
constexpr std::size_t kAuxAlignment = 16;        // CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER
constexpr std::uint32_t kAlgorithm = 0x57A4D1;

// What cublasLtMatmulAlgoGetHeuristic() chose the algorithm for, kept in cublasLtMatmulAlgo_t.
struct Algorithm {
  std::uint32_t mark = kAlgorithm;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  std::uint32_t shape = 0; // hash of operations, types, sizes and leading dimensions
  std::uint32_t reserved = 0;
  std::uint64_t workspace_bytes = 0;
  std::uint32_t alignments[4] = {}; // in bytes: of A, B, C, D
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

struct Matmul {
  LtProduct product;
  Matrix a, b, c, d;
  float alpha = 1, beta = 0;
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  int device = 0;

  bool transposes_a() const { return product.operation_a == CUBLAS_OP_T; }
  bool transposes_b() const { return product.operation_b == CUBLAS_OP_T; }
  std::int64_t k() const { return transposes_a() ? a.rows : a.columns; }
  Matrix bias() const {
    const auto type = product.bias_type < 0 ? d.type : static_cast<cudaDataType>(product.bias_type);
    const std::int64_t rows = product.sums_b() ? d.columns : d.rows;
    return {product.bias, type, rows, 1, rows};
  }
  Matrix aux() const {
    const auto type = product.aux_type < 0 ? d.type : static_cast<cudaDataType>(product.aux_type);
    return {product.aux, type, d.rows, d.columns, product.aux_leading};
  }
};

std::string size_of(const Matrix& matrix) {
  return std::to_string(matrix.rows) + " x " + std::to_string(matrix.columns);
}

void check_epilogue(const Matmul& m) {
  switch (m.product.epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
    case CUBLASLT_EPILOGUE_BIAS:
    case CUBLASLT_EPILOGUE_BGRADB:
      return;
    case CUBLASLT_EPILOGUE_GELU_AUX:
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
    case CUBLASLT_EPILOGUE_DGELU:
      break;
    default:
      unknown("epilogue " + std::to_string(m.product.epilogue));
  }
  if (m.product.aux_leading >= m.d.rows && m.product.aux_leading % kAuxLeadingUnit == 0) return;
  throw BlasError(CUBLAS_STATUS_NOT_SUPPORTED,
                  "CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD is " + std::to_string(m.product.aux_leading) +
                      "; it must be divisible by 8, and at least " + std::to_string(m.d.rows));
}

void check_shape(const Matmul& m) {
  for (const cublasOperation_t operation : {m.product.operation_a, m.product.operation_b}) {
    if (operation != CUBLAS_OP_N && operation != CUBLAS_OP_T) unknown("operation " + std::to_string(operation));
  }
  for (const Matrix* each : {&m.a, &m.b, &m.c, &m.d}) {
    if (each->rows < 1 || each->columns < 1) invalid("a matrix is " + size_of(*each));
  }
  const std::int64_t rows = m.transposes_a() ? m.a.columns : m.a.rows,
                     columns = m.transposes_b() ? m.b.rows : m.b.columns;
  const std::int64_t k_of_b = m.transposes_b() ? m.b.columns : m.b.rows;
  if (m.k() != k_of_b || m.d.rows != rows || m.d.columns != columns || m.c.rows != rows || m.c.columns != columns) {
    invalid("sizes do not match: A is " + size_of(m.a) + (m.transposes_a() ? " transposed" : "") + ", B is " +
            size_of(m.b) + (m.transposes_b() ? " transposed" : "") + ", C is " + size_of(m.c) + ", D is " +
            size_of(m.d));
  }
  check_leading(m.a, "A");
  check_leading(m.b, "B");
  check_leading(m.c, "C");
  check_leading(m.d, "D");
  if (m.a.type != m.b.type || m.c.type != m.d.type || (m.d.type != m.a.type && m.d.type != CUDA_R_32F)) {
    throw BlasError(CUBLAS_STATUS_NOT_SUPPORTED, "cuBLASLt has no product of " + name_of(m.a.type) + " and " +
                                                     name_of(m.b.type) + " and " + name_of(m.c.type) + " to " +
                                                     name_of(m.d.type));
  }
  check_epilogue(m);
}

std::uint32_t hash_of(const Matmul& m) {
  std::uint32_t hash = 2166136261u; // FNV-1a
  auto add = [&hash](std::int64_t value) {
    for (int byte = 0; byte < 8; ++byte) hash = (hash ^ (value >> 8 * byte & 0xFF)) * 16777619u;
  };
  add(m.product.operation_a), add(m.product.operation_b), add(m.product.compute);
  for (const Matrix* each : {&m.a, &m.b, &m.c, &m.d}) {
    add(each->type), add(each->rows), add(each->columns), add(each->leading);
  }
  return hash;
}

void check_algorithm(const Matmul& m, const cublasLtMatmulAlgo_t* algorithm) {
  if (!algorithm) unknown("products without an algorithm: call cublasLtMatmulAlgoGetHeuristic()");
  Algorithm chosen;
  std::memcpy(static_cast<void*>(&chosen), algorithm, sizeof chosen);
  if (chosen.mark != kAlgorithm) invalid("the algorithm does not come from cublasLtMatmulAlgoGetHeuristic()");
  if (chosen.epilogue != m.product.epilogue || chosen.shape != hash_of(m)) {
    invalid("the algorithm was chosen for another epilogue, or other operations, types or sizes");
  }
  if (chosen.workspace_bytes > m.workspace_bytes) {
    invalid("the algorithm needs a workspace of " + std::to_string(chosen.workspace_bytes) + " bytes, and has " +
            std::to_string(m.workspace_bytes));
  }
  const Matrix* matrices[] = {&m.a, &m.b, &m.c, &m.d};
  constexpr const char* kNames[] = {"A", "B", "C", "D"};
  for (int n = 0; n < 4; ++n) {
    check_memory(m.device, matrices[n]->address, matrices[n]->bytes(), chosen.alignments[n], kNames[n]);
  }
}

void check_pointers(const Matmul& m) {
  if (m.workspace_bytes > 0) {
    check_memory(m.device, m.workspace, m.workspace_bytes, kWorkspaceAlignment, "the workspace");
  }
  check_apart(m.d, m.a, "A");
  check_apart(m.d, m.b, "B");
  if (m.product.adds_bias() || m.product.sums_b()) {
    check_memory(m.device, m.bias().address, m.bias().bytes(), bytes_of(m.bias().type),
                 "CUBLASLT_MATMUL_DESC_BIAS_POINTER");
  }
  if (!m.product.has_aux()) return;
  check_memory(m.device, m.aux().address, m.aux().bytes(), kAuxAlignment, "CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER");
  check_apart(m.d, m.aux(), "the values before GELU");
}

// The tanh form, as cuBLASLt's.
constexpr double kGeluScale = 0.7978845608028654, kGeluCube = 0.044715; // sqrt(2 / pi)
double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(kGeluScale * (x + kGeluCube * x * x * x)));
}
double gelu_gradient(double x) {
  const double t = std::tanh(kGeluScale * (x + kGeluCube * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kGeluScale * (1 + 3 * kGeluCube * x * x);
}

void write_matrix(int device, const Matrix& matrix, const std::vector<double>& values, const char* what) {
  const std::size_t width = bytes_of(matrix.type);
  auto* column = static_cast<std::byte*>(const_cast<void*>(matrix.address));
  for (std::int64_t c = 0; c < matrix.columns; ++c) {
    std::byte* data = data_to_write(device, column, static_cast<std::size_t>(matrix.rows) * width, what);
    for (std::int64_t r = 0; r < matrix.rows; ++r) {
      from_float(matrix.type, data + r * width, static_cast<float>(values[c * matrix.rows + r]));
    }
    column += matrix.leading * static_cast<std::int64_t>(width);
  }
}

void apply_epilogue(const Matmul& m, std::vector<double>& values) {
  if (m.product.adds_bias()) {
    const std::vector<float> bias = read_matrix(m.device, m.bias(), "cublasLtMatmul: the bias");
    for (std::size_t n = 0; n < values.size(); ++n) values[n] += bias[n % bias.size()];
  }
  if (m.product.epilogue == CUBLASLT_EPILOGUE_DGELU) {
    const std::vector<float> before = read_matrix(m.device, m.aux(), "cublasLtMatmul: the values before GELU");
    for (std::size_t n = 0; n < values.size(); ++n) values[n] *= gelu_gradient(before[n]);
  } else if (m.product.has_aux()) {
    write_matrix(m.device, m.aux(), values, "cublasLtMatmul: the values before GELU");
    for (double& value : values) value = gelu(value);
  }
}

// The gradient of a bias: sums of B over k, one for each column of D.
std::vector<double> sums_of(const std::vector<float>& b, std::int64_t k, std::int64_t columns) {
  std::vector<double> sums(static_cast<std::size_t>(columns), 0.0);
  for (std::size_t n = 0; n < b.size(); ++n) sums[n / static_cast<std::size_t>(k)] += b[n];
  return sums;
}

std::size_t bytes_moved(const Matmul& m) {
  std::size_t bytes = m.a.element_bytes() + m.b.element_bytes() + m.d.element_bytes();
  if (m.beta != 0) bytes += m.c.element_bytes();
  if (m.product.has_aux()) bytes += m.aux().element_bytes();
  if (m.product.adds_bias() || m.product.sums_b()) bytes += m.bias().element_bytes();
  return bytes;
}

void run(const Matmul& m) {
  spoil_workspace(m.device, m.workspace, m.workspace_bytes);
  std::vector<float> a = read_matrix(m.device, m.a, "cublasLtMatmul: A");
  std::vector<float> b = read_matrix(m.device, m.b, "cublasLtMatmul: B");
  if (m.transposes_a()) a = transpose(a, m.a.rows, m.a.columns);
  if (m.transposes_b()) b = transpose(b, m.b.rows, m.b.columns);
  std::vector<double> values = multiply(a, b, m.d.rows, m.d.columns, m.k());
  for (double& value : values) value *= m.alpha;
  if (m.beta != 0) {
    const std::vector<float> c = read_matrix(m.device, m.c, "cublasLtMatmul: C");
    for (std::size_t n = 0; n < values.size(); ++n) values[n] += m.beta * c[n];
  }
  apply_epilogue(m, values);
  write_matrix(m.device, m.d, values, "cublasLtMatmul: D");
  if (m.product.sums_b()) {
    write_matrix(m.device, m.bias(), sums_of(b, m.k(), m.d.columns), "cublasLtMatmul: the gradient of the bias");
  }
  count_product(m.a.type, m.product.compute, {m.d.rows, m.d.columns, m.k()}, bytes_moved(m));
}

} // namespace

} // namespace triax::gpu_stand_in

using namespace triax::gpu_stand_in; // calls of cuBLASLt have its global names

extern "C" {

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t* results, int* count) {
  return blas_call("cublasLtMatmulAlgoGetHeuristic", [&] {
    handle_at(handle);
    *count = 0;
    if (wanted < 1) invalid("the count of algorithms is " + std::to_string(wanted));
    const Matmul m{product_at(product), layout_at(a).matrix, layout_at(b).matrix, layout_at(c).matrix,
                   layout_at(d).matrix};
    check_shape(m);
    const LtPreference& wishes = preference_at(preference);
    Algorithm chosen;
    chosen.epilogue = m.product.epilogue;
    chosen.shape = hash_of(m);
    chosen.workspace_bytes = wishes.workspace_bytes;
    std::ranges::copy(wishes.alignments, chosen.alignments);
    *results = {};
    std::memcpy(&results->algo, &chosen, sizeof chosen);
    results->workspaceSize = wishes.workspace_bytes;
    results->state = CUBLAS_STATUS_SUCCESS;
    *count = 1;
  });
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t layout_a, const void* b, cublasLtMatrixLayout_t layout_b,
                              const void* beta, const void* c, cublasLtMatrixLayout_t layout_c, void* d,
                              cublasLtMatrixLayout_t layout_d, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  return blas_call("cublasLtMatmul", [&] {
    const int device = check_stream(stream);
    if (handle_at(handle).device != device) {
      invalid("the handle is GPU " + std::to_string(handle_at(handle).device) + "'s");
    }
    if (!alpha || !beta) invalid("alpha or beta is null");
    auto matrix = [](cublasLtMatrixLayout_t layout, const void* address) {
      Matrix placed = layout_at(layout).matrix;
      placed.address = address;
      return placed;
    };
    const Matmul m{product_at(product),
                   matrix(layout_a, a),
                   matrix(layout_b, b),
                   matrix(layout_c, c),
                   matrix(layout_d, d),
                   *static_cast<const float*>(alpha),
                   *static_cast<const float*>(beta),
                   workspace,
                   workspace_bytes,
                   device};
    check_shape(m);
    check_algorithm(m, algorithm);
    check_pointers(m);
    submit_product(stream, "cublasLtMatmul", [m] { run(m); });
  });
}

} // extern "C"
