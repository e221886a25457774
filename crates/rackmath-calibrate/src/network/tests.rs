use super::*;
use std::fmt::Write as _;

/// A few rows carried here by hand: aiconfigurator database 0.12.0, custom and NCCL collectives.
const COLLECTIVES: &str = "\
system,table,backend,backend_version,op_name,kernel_source,dtype,num_gpus,message_bytes,latency_us
a100_sxm,custom_allreduce,sglang,0.5.10,all_reduce,SGLang_CustomAllReduce_eager,bfloat16,8,65536,41.556
a100_sxm,nccl,nccl,2.27.3,all_gather,NCCL,half,8,67108864,351.6
h100_sxm,custom_allreduce,vllm,0.24.0,all_reduce,vLLM_custom_graph,bfloat16,4,65536,5.234
h100_sxm,custom_allreduce,trtllm,1.3.0rc20,all_reduce,TRTLLM,bfloat16,8,16384,3.559
h100_sxm,nccl,nccl,2.29.2,all_reduce,NCCL,half,8,536870912,2111.06
h100_sxm,nccl,nccl,2.29.2,alltoall,NCCL,half,8,134217728,402.42
h100_sxm,nccl,nccl,2.29.2,broadcast,NCCL,half,8,134217728,402.42
abacus,nccl,nccl,2.29.2,all_reduce,NCCL,half,8,134217728,402.42
";

/// The same database's expert tables.
const EXCHANGES: &str = "\
system,table,backend,backend_version,comm_backend,phase,comm_dtype,ep_gpus,nodes,hidden_size,topk,num_experts,tokens_per_gpu,sms,latency_us
h100_sxm,wideep_deepep_ll,sglang,0.5.6.post2,deepep,dispatch,,,8,7168,8,256,256,,301
h100_sxm,wideep_deepep_normal,sglang,0.5.6.post2,deepep,combine,,,4,7168,8,256,4096,20,3633.7
h100_sxm,moe_a2a,trtllm,1.3.0rc11,trtllm_deepep_ht,dispatch,nvfp4,8,1,7168,8,256,1024,0,172.0
h100_sxm,moe_a2a,nobody,1,carrier_pigeon,dispatch,bfloat16,8,1,7168,8,256,1024,0,172.0
";

/// TensorRT-LLM tech blog 18.
const NVL72: &str = "\
hardware,ep_gpus,phase,dtype,hidden_size,topk,num_experts,tokens_per_gpu,latency_us,logical_bandwidth_GBps,engine,date,source
GB200-NVL72,16,dispatch,bf16,7168,8,256,1024,181.2,648.0,TensorRT-LLM one-sided NVLink all-to-all,2026-05,blog18
GB200-NVL72,8,dispatch,nvfp4,7168,8,256,2048,101.7,649.3,TensorRT-LLM one-sided NVLink all-to-all,2026-05,blog18
";

#[test]
fn rows_are_read_with_their_kernels_and_counted_once_in_their_group() {
    let mut all = Vec::new();
    for (file, text) in FILES.into_iter().zip([COLLECTIVES, EXCHANGES, NVL72]) {
        all.extend(crate::rows::parse(text).unwrap().iter().map(|record| row(file, record)));
    }
    let rows: Rows<Row> = all.into_iter().collect();
    let engine = Some(("sglang", Launch::Eager));
    let bytes = Bytes::b(65536.0);
    assert_eq!(rows.rows[0].what, What::Collective { collective: Collective::AllReduce, engine, n: 8, bytes });
    let What::Exchange { work, ranks, .. } = &rows.rows[7].what else { panic!("{:?}", rows.rows[7]) };
    assert_eq!((work.phase, work.payload.get(), *ranks), (Phase::Dispatch, 7392.0, Some(64)));
    assert_eq!(rows.skipped["no collective \"broadcast\""], 1);
    assert_eq!(rows.skipped["no expert kernel \"moe_a2a carrier_pigeon\""], 1);
    let catalog = rackmath_catalog::embedded();
    let machines = Machines::of(&rows.rows, &catalog).unwrap();
    for row in rows.rows.iter().filter(|r| r.system != "abacus") {
        let distance = machines.distance(row).unwrap();
        assert!(distance < 0.2, "a row carried here is predicted within a fifth: {row:?}: {distance}");
    }
    let table = score_rows(&rows, &catalog).unwrap();
    let counted: u64 = table.lines.iter().filter(|l| l.group.len() == 4).map(|l| l.fit.rows).sum();
    assert_eq!(counted, 11);
    assert_eq!(table.skipped.values().sum::<usize>(), 3);
    let text = table.to_string();
    assert!(text.contains("dispatch and combine") && text.contains("skipped 1: no chip \"abacus\""), "{text}");
}

#[test]
fn a_fit_recovers_the_constants_that_made_the_rows() {
    // Rows predicted with the catalogue's nvlink3 stand in for measurements.
    let mut text = String::from("system,op_name,kernel_source,num_gpus,message_bytes,latency_us\n");
    for op in ["all_gather", "all_reduce", "alltoall"] {
        for n in [2, 4, 8] {
            for size in (9..30).step_by(2) {
                writeln!(text, "a100_sxm,{op},NCCL,{n},{},1", 1_u64 << size).unwrap();
            }
        }
    }
    let table = crate::rows::parse(&text).unwrap();
    let mut rows: Vec<Row> = table.iter().map(|record| row(FILES[0], record).unwrap()).collect();
    let machines = Machines::of(&rows, &rackmath_catalog::embedded()).unwrap();
    for row in &mut rows {
        row.measured = machines.predict(row).unwrap();
    }
    let fitted = fit::all(&rows, &machines);
    let (got, made) = (&fitted["nvlink3"].library, &machines.networks["nvlink3"].library);
    for (got, made) in [
        (got.launch / made.launch, 1.0),
        (got.hop / made.hop, 1.0),
        (got.efficiency.get(), made.efficiency.get()),
        (got.half / made.half, 1.0),
    ] {
        assert!((got / made - 1.0).abs() < 0.03, "{got} is not {made}");
    }
    assert!(got.evidence.fit.unwrap().median < 0.01);
    assert!(fit::toml(&fitted).contains("[library]\nlaunch = \"10.5 us\""), "{fitted:?}");
    assert_eq!(fitted, fit::all(&rows, &machines), "the same rows give the same constants");
}

#[test]
fn collectives_of_other_makers_are_the_librarys_or_refused() {
    let csv = "\
system,backend,op_name,kernel_source,num_gpus,message_bytes,latency_us,nodes
mi300x,rccl-tests,all_reduce,out_of_place,8,1048576,60,1
mi300x,rccl-tests,all_reduce,out_of_place,16,1048576,90,2
mi300x,quick,all_reduce,quick_int8,8,1048576,30,1
";
    let read = |record: &Record| row("amd_tpu/collectives_rccl.csv", record);
    let rows: Rows<Row> = crate::rows::parse(csv).unwrap().iter().map(read).collect();
    assert_eq!((rows.rows.len(), rows.rows[0].kernel.as_str()), (1, "library"));
    assert_eq!(rows.skipped["a collective between nodes"], 1);
    assert_eq!(rows.skipped["no all-reduce kernel \"quick_int8\""], 1);
    let machines = Machines::of(&rows.rows, &rackmath_catalog::embedded()).unwrap();
    assert!(machines.predict(&rows.rows[0]).unwrap() > Seconds::ZERO);
}

/// Rows of amd_tpu/: MORI's tuning tables leave the experts out, RCCL was called from Python in one source and timed alone in another.
#[test]
fn rows_of_amd_are_read_with_what_their_tables_leave_out() {
    let mori = "system,table,backend,comm_backend,phase,comm_dtype,ep_gpus,nodes,hidden_size,topk,num_experts,tokens_per_gpu,latency_us
mi300x,mori_IntraNode,mori,xgmi,combine,bf16,4,1,7168,8,,64,39.1
mi300x,mori_IntraNode,mori,xgmi,dispatch,fp4,4,1,3584,8,,64,39.1
mi355x,mori_AsyncLL,mori,rdma+xgmi,dispatch,bf16,16,2,7168,8,,64,39.1
";
    let rows: Vec<_> = crate::rows::parse(mori).unwrap().iter().map(|record| row(FILES[5], record)).collect();
    let What::Exchange { work, ranks } = &rows[0].as_ref().unwrap().what else { panic!("{rows:?}") };
    assert_eq!((work.experts, *ranks, work.payload.get()), (128, Some(4), 14336.0));
    let What::Exchange { work, .. } = &rows[1].as_ref().unwrap().what else { panic!("{rows:?}") };
    assert_eq!(work.payload.get(), 3584.0);
    assert!(rows[2].as_ref().unwrap_err().contains("no expert kernel"));
    let rccl = "system,table,backend,op_name,kernel_source,dtype,num_gpus,message_bytes,latency_us,nodes
mi300x,rccl,rccl,all_reduce,rccl,half,8,1048576,133,1
mi300x,rccl,rccl-tests,all_reduce,out_of_place,float,8,1048576,28.39,1
";
    let mut all = vec![rows.into_iter().next().unwrap().unwrap()];
    all.extend(crate::rows::parse(rccl).unwrap().iter().map(|record| row(FILES[3], record).unwrap()));
    assert_eq!((all[1].kernel.as_str(), all[2].kernel.as_str()), ("library eager", "library"));
    let machines = Machines::of(&all, &rackmath_catalog::embedded()).unwrap();
    for row in &all {
        let distance = machines.distance(row).unwrap();
        assert!(distance < 0.4, "{row:?}: {distance}");
    }
}
