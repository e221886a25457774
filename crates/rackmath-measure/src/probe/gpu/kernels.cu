// Kernels of the probe, for NVIDIA's and AMD's run-time compilers alike. Each thread moves eight vectors of sixteen bytes, a block of threads apart.
#define EACH 8

extern "C" __global__ void empty_kernel() {}

extern "C" __global__ void read_kernel(const float4 *__restrict__ a, float *out) {
    size_t at = (size_t)blockIdx.x * blockDim.x * EACH + threadIdx.x;
    float4 v[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) v[i] = a[at + (size_t)i * blockDim.x];
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < EACH; i++) sum += v[i].x + v[i].y + v[i].z + v[i].w;
    // Never true of what the arrays hold, but the compiler cannot know: the loads stay.
    if (sum == 12345.678f) out[0] = sum;
}

extern "C" __global__ void copy_kernel(const float4 *__restrict__ a, float4 *__restrict__ b) {
    size_t at = (size_t)blockIdx.x * blockDim.x * EACH + threadIdx.x;
    float4 v[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) v[i] = a[at + (size_t)i * blockDim.x];
#pragma unroll
    for (int i = 0; i < EACH; i++) b[at + (size_t)i * blockDim.x] = v[i];
}

extern "C" __global__ void triad_kernel(const float4 *__restrict__ b, const float4 *__restrict__ c, float4 *__restrict__ a, float s) {
    size_t at = (size_t)blockIdx.x * blockDim.x * EACH + threadIdx.x;
    float4 v[EACH], w[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        v[i] = b[at + (size_t)i * blockDim.x];
        w[i] = c[at + (size_t)i * blockDim.x];
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        float4 x;
        x.x = v[i].x + s * w[i].x;
        x.y = v[i].y + s * w[i].y;
        x.z = v[i].z + s * w[i].z;
        x.w = v[i].w + s * w[i].w;
        a[at + (size_t)i * blockDim.x] = x;
    }
}
