//! Saving and loading: Hugging Face folders, PEFT adapters, GGUF files; and files that are not what
//! they should be.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use catamount_model::{
    Activations, Adapter, Batch, Config, Cpu, Error, Family, Heads, Keep, LoraConfig, Memory,
    Model, Tokenizer, load, load_adapter, load_gguf, pieces, save, save_adapter,
};
use catamount_search::Stream;

/// A fresh folder that is gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("catamount-model-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn tokenizer() -> Tokenizer {
    Tokenizer::train_bpe(["|- ( ph -> ps )", "|- ( ps -> ph )"].iter(), 270).unwrap()
}

fn model(family: Family, tied: bool) -> Model<Cpu> {
    let config = Config {
        family,
        heads: Heads { heads: 4, kv_heads: 2, dim: 8 },
        tied,
        qkv_bias: family == Family::Qwen2,
        ..Config::small(272, 32, 2, 64)
    };
    let mut model = Model::init(Arc::new(Cpu), config, Stream::new(1)).unwrap();
    // Biases and norms are not all alike, so that a mix-up shows.
    for p in model.base_mut().filter(|p| p.shape[0] == 1) {
        let values: Vec<f32> = (0..p.len() as u64)
            .map(|i| 0.5 + Stream::new(2).named(&p.name).uniform(i) as f32)
            .collect();
        Cpu.upload(&values, &mut p.value, 0).unwrap();
    }
    model
}

fn scores(model: &Model<Cpu>) -> Vec<f32> {
    let mut batch = Batch::new();
    batch.push(&[1, 2, 3, 50, 7], &[100, 271, 4]);
    let mut acts = Activations::new(model, batch.len(), Keep::Nothing).unwrap();
    model.forward(&batch, &mut acts, None).unwrap();
    model.score(&mut acts).unwrap()
}

fn cut(path: &Path, keep: f64) {
    let bytes = std::fs::read(path).unwrap();
    std::fs::write(path, &bytes[..(bytes.len() as f64 * keep) as usize]).unwrap();
}

#[test]
fn hugging_face_folders_round_trip() {
    for (family, tied) in [(Family::Qwen2, false), (Family::Llama, true)] {
        let folder = Folder::new(&format!("hf-{tied}"));
        let (model, tokenizer) = (model(family, tied), tokenizer());
        save(&model, &tokenizer, &folder.0).unwrap();
        let (loaded, same) = load(&folder.0, Arc::new(Cpu), false).unwrap();
        assert_eq!(loaded.config, model.config);
        assert_eq!(scores(&loaded), scores(&model));
        assert_eq!(same.prompt("|- ( ph").unwrap(), tokenizer.prompt("|- ( ph").unwrap());
        assert_eq!(same.end(), tokenizer.end());
        assert!(loaded.trained().next().is_none());
        assert!(
            std::fs::read_dir(&folder.0).unwrap().all(|f| !f
                .unwrap()
                .path()
                .to_string_lossy()
                .contains("unfinished"))
        );
    }
}

#[test]
fn shards_load_like_one_file() {
    let folder = Folder::new("shards");
    let model = model(Family::Qwen2, false);
    save(&model, &tokenizer(), &folder.0).unwrap();
    let bytes = std::fs::read(folder.0.join("model.safetensors")).unwrap();
    let all = safetensors::SafeTensors::deserialize(&bytes).unwrap().tensors();
    let mut map = serde_json::Map::new();
    for (i, half) in all.chunks(all.len() / 2 + 1).enumerate() {
        let name = format!("model-0000{i}.safetensors");
        half.iter().for_each(|(tensor, _)| drop(map.insert(tensor.clone(), name.clone().into())));
        std::fs::write(folder.0.join(&name), safetensors::serialize(half.to_vec(), None).unwrap())
            .unwrap();
    }
    std::fs::remove_file(folder.0.join("model.safetensors")).unwrap();
    let index = serde_json::json!({"metadata": {}, "weight_map": map});
    std::fs::write(folder.0.join("model.safetensors.index.json"), index.to_string()).unwrap();
    assert_eq!(scores(&load(&folder.0, Arc::new(Cpu), false).unwrap().0), scores(&model));
}

#[test]
fn adapters_round_trip() {
    let folder = Folder::new("peft");
    let mut model = model(Family::Qwen2, false);
    let plain = scores(&model);
    for targets in
        [vec!["q_proj", "v_proj", "down_proj"], catamount_model::TARGETS.map(|t| t.0).to_vec()]
    {
        let config = LoraConfig {
            rank: 3,
            alpha: 5.0,
            dropout: 0.1,
            targets: targets.iter().map(|t| t.to_string()).collect(),
        };
        let mut adapter = Adapter::new(&Cpu, &model.config, config, true, Stream::new(4)).unwrap();
        for p in adapter.parameters_mut() {
            let values: Vec<f32> = (0..p.len() as u64)
                .map(|i| Stream::new(6).named(&p.name).uniform(i) as f32 - 0.5)
                .collect();
            Cpu.upload(&values, &mut p.value, 0).unwrap();
        }
        save_adapter(&Cpu, &adapter, "base", &folder.0).unwrap();
        let loaded = load_adapter(&Cpu, &model.config, &folder.0, false).unwrap();
        assert_eq!(loaded.config, adapter.config);
        model.swap_adapter(Some(adapter));
        let adapted = scores(&model);
        assert_ne!(adapted, plain);
        model.swap_adapter(Some(loaded));
        assert_eq!(scores(&model), adapted);
        model.swap_adapter(None);
        assert_eq!(scores(&model), plain);
    }
    let mut other = model.config.clone();
    other.layers = 1;
    let error = load_adapter(&Cpu, &other, &folder.0, false).err().unwrap().to_string();
    assert!(error.contains("another base"), "{error}");
    other = model.config.clone();
    other.hidden = 16;
    assert!(matches!(load_adapter(&Cpu, &other, &folder.0, false), Err(Error::Shape { .. })));
    let config = folder.0.join("adapter_config.json");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("\"use_dora\": false", "\"use_dora\": true")).unwrap();
    assert!(
        load_adapter(&Cpu, &model.config, &folder.0, false)
            .err()
            .unwrap()
            .to_string()
            .contains("use_dora")
    );
}

/// A minimal GGUF writer: metadata, then f32, f16 or Q8_0 tensors.
fn write_gguf(path: &Path, model: &Model<Cpu>, arch: &str, interleave: bool) {
    let c = &model.config;
    let (mut head, mut data) = (Vec::new(), Vec::new());
    let text = |out: &mut Vec<u8>, s: &str| {
        out.extend((s.len() as u64).to_le_bytes());
        out.extend(s.as_bytes());
    };
    let mut meta: Vec<(String, Vec<u8>)> = Vec::new();
    let mut put = |key: &str, kind: u32, value: Vec<u8>| {
        meta.push((key.into(), [kind.to_le_bytes().to_vec(), value].concat()))
    };
    let list = |items: Vec<String>| {
        let mut out =
            [8u32.to_le_bytes().to_vec(), (items.len() as u64).to_le_bytes().to_vec()].concat();
        items.iter().for_each(|s| text(&mut out, s));
        out
    };
    let mut name = Vec::new();
    text(&mut name, arch);
    put("general.architecture", 8, name);
    for (key, value) in [
        ("block_count", c.layers),
        ("embedding_length", c.hidden),
        ("feed_forward_length", c.intermediate),
        ("attention.head_count", c.heads.heads),
        ("attention.head_count_kv", c.heads.kv_heads),
        ("attention.key_length", c.heads.dim),
        ("context_length", c.positions),
    ] {
        put(&format!("{arch}.{key}"), 4, (value as u32).to_le_bytes().to_vec());
    }
    put(&format!("{arch}.attention.layer_norm_rms_epsilon"), 6, c.norm_eps.to_le_bytes().to_vec());
    put(&format!("{arch}.rope.freq_base"), 6, (c.rope_theta as f32).to_le_bytes().to_vec());
    let mut kind = Vec::new();
    text(&mut kind, "gpt2");
    put("tokenizer.ggml.model", 8, kind);
    // Bytes as a byte-level vocabulary writes them, one merge, and an end token.
    let (mut tokens, mut next) = (vec!["<|endoftext|>".to_string()], 256u32);
    for b in 0..256u32 {
        let printable = matches!(b, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
        tokens.push(char::from_u32(if printable { b } else { next }).unwrap().to_string());
        next += u32::from(!printable);
    }
    tokens.push("ph".into());
    let kinds: Vec<u8> =
        (0..tokens.len()).flat_map(|i| (if i == 0 { 3i32 } else { 1 }).to_le_bytes()).collect();
    let kinds =
        [5u32.to_le_bytes().to_vec(), (tokens.len() as u64).to_le_bytes().to_vec(), kinds].concat();
    put("tokenizer.ggml.tokens", 9, list(tokens));
    put("tokenizer.ggml.token_type", 9, kinds);
    put("tokenizer.ggml.merges", 9, list(vec!["p h".into()]));
    put("tokenizer.ggml.eos_token_id", 4, 0u32.to_le_bytes().to_vec());

    let all = pieces(c);
    head.extend(b"GGUF");
    head.extend(3u32.to_le_bytes());
    head.extend((all.len() as u64).to_le_bytes());
    head.extend((meta.len() as u64).to_le_bytes());
    for (key, value) in meta {
        text(&mut head, &key);
        head.extend(value);
    }
    for piece in all {
        let parameter = model.base().find(|p| p.name == piece.parameter).unwrap();
        let mut numbers = vec![0.0; piece.shape.iter().product()];
        Cpu.download(&parameter.value, piece.offset, &mut numbers).unwrap();
        if interleave && piece.interleaved_heads > 0 {
            let (rows, dim) = (piece.shape[0], c.heads.dim);
            let width = numbers.len() / rows;
            let old = numbers.clone();
            for row in 0..rows {
                let (h, i) = (row / dim, row % dim);
                let to = h * dim + 2 * (i % (dim / 2)) + i / (dim / 2);
                numbers[to * width..][..width].copy_from_slice(&old[row * width..][..width]);
            }
        }
        text(&mut head, &piece.gguf);
        head.extend((piece.shape.len() as u32).to_le_bytes());
        piece.shape.iter().rev().for_each(|d| head.extend((*d as u64).to_le_bytes()));
        head.extend(0u32.to_le_bytes());
        head.extend((data.len() as u64).to_le_bytes());
        data.extend(numbers.iter().flat_map(|x| x.to_le_bytes()));
        data.resize(data.len().next_multiple_of(32), 0);
    }
    head.resize(head.len().next_multiple_of(32), 0);
    std::fs::write(path, [head, data].concat()).unwrap();
}

#[test]
fn gguf_files_load() {
    let folder = Folder::new("gguf");
    let path = folder.0.join("model.gguf");
    for (family, arch) in [(Family::Llama, "llama"), (Family::Qwen2, "qwen2")] {
        let model = model(family, arch == "llama");
        write_gguf(&path, &model, arch, arch == "llama");
        let (loaded, tokenizer) = load_gguf(&path, Arc::new(Cpu), true).unwrap();
        assert_eq!(loaded.config, model.config);
        assert_eq!(scores(&loaded), scores(&model), "{arch}");
        assert_eq!(tokenizer.end(), 0);
        assert_eq!(tokenizer.encode("ph(").unwrap(), [257, 1 + u32::from(b'(')]);
    }
    for keep in [0.999, 0.5, 0.01, 0.0] {
        let damaged = folder.0.join("damaged.gguf");
        std::fs::copy(&path, &damaged).unwrap();
        cut(&damaged, keep);
        let error = load_gguf(&damaged, Arc::new(Cpu), false).err().unwrap().to_string();
        assert!(error.contains("damaged.gguf"), "{error}");
    }
}

#[test]
fn damage_is_named() {
    let folder = Folder::new("damage");
    let model = model(Family::Qwen2, false);
    let fresh = || save(&model, &tokenizer(), &folder.0).unwrap();
    let open = || load(&folder.0, Arc::new(Cpu), false).err().expect("must not load");
    let (config, weights) = (folder.0.join("config.json"), folder.0.join("model.safetensors"));

    fresh();
    cut(&weights, 0.7);
    assert!(open().to_string().contains("cut short"));
    fresh();
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("\"intermediate_size\": 96", "\"intermediate_size\": 64"))
        .unwrap();
    match open() {
        Error::Shape { name, expected, got, .. } => {
            assert!(name.contains("gate_proj") && expected[0] == 64 && got[0] == 96);
        }
        other => panic!("{other}"),
    }
    std::fs::write(&config, text.replace("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3"))
        .unwrap();
    let error = open().to_string();
    assert!(error.contains("model.layers.2.") && error.contains("missing"), "{error}");
    std::fs::write(&config, text.replace("\"vocab_size\": 272", "\"vocab_size\": 200")).unwrap();
    assert!(matches!(open(), Error::Vocabulary { model: 200, .. }));
    std::fs::write(&config, "{").unwrap();
    assert!(open().to_string().contains("config.json"));
    fresh();
    std::fs::remove_file(folder.0.join("tokenizer.json")).unwrap();
    assert!(open().to_string().contains("tokenizer.json"));
}

#[test]
fn a_failed_save_leaves_the_old_checkpoint() {
    let folder = Folder::new("full");
    let model = model(Family::Llama, true);
    save(&model, &tokenizer(), &folder.0).unwrap();
    let before = std::fs::read(folder.0.join("model.safetensors")).unwrap();
    // The name of the first file is taken by a folder, so it cannot be given its final name.
    let config = folder.0.join("config.json");
    std::fs::remove_file(&config).unwrap();
    std::fs::create_dir_all(config.join("in the way")).unwrap();
    let other = self::model(Family::Llama, false);
    let error = save(&other, &tokenizer(), &folder.0).unwrap_err().to_string();
    assert!(error.contains("config.json"), "{error}");
    assert_eq!(std::fs::read(folder.0.join("model.safetensors")).unwrap(), before);
}

/// Bytes with one stretch replaced by another of the same length, wherever it first stands.
fn replaced(bytes: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    assert_eq!(old.len(), new.len());
    let at = bytes.windows(old.len()).position(|window| window == old).unwrap();
    [&bytes[..at], new, &bytes[at + old.len()..]].concat()
}

#[test]
fn a_gguf_file_that_lies_is_refused_before_it_is_believed() {
    let folder = Folder::new("lies");
    let path = folder.0.join("model.gguf");
    write_gguf(&path, &model(Family::Llama, true), "llama", true);
    let whole = std::fs::read(&path).unwrap();
    let refused = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        load_gguf(&path, Arc::new(Cpu), false).err().expect("must not load").to_string()
    };
    // The shape of the first query matrix, [32, 32]: the same number of numbers otherwise.
    let shape = |dims: u32, sizes: &[u64]| {
        let mut bytes = [&b"blk.0.attn_q.weight"[..], &dims.to_le_bytes()].concat();
        sizes.iter().for_each(|size| bytes.extend(size.to_le_bytes()));
        bytes
    };
    let said = refused(&replaced(&whole, &shape(2, &[32, 32]), &shape(2, &[1024, 1])));
    assert!(said.contains("attn_q") && said.contains("[1, 1024]"), "{said}");
    let said = refused(&replaced(&whole, &shape(2, &[32, 32]), &shape(2, &[512, 2])));
    assert!(said.contains("[2, 512]"), "{said}");
    let at = whole.windows(19).position(|w| w == b"blk.0.attn_q.weight").unwrap() + 19;
    let scalar = [&whole[..at], &0u32.to_le_bytes(), &whole[at + 20..]].concat();
    let said = refused(&scalar);
    assert!(said.contains("attn_q") && said.contains("[]"), "{said}");
    let count = |value: u32| {
        [&b"llama.block_count"[..], &4u32.to_le_bytes(), &value.to_le_bytes()].concat()
    };
    let said = refused(&replaced(&whole, &count(2), &count(1)));
    assert!(said.contains("holds 2 layers where the configuration says 1"), "{said}");
    for absurd in [3, 1 << 20, u32::MAX] {
        let said = refused(&replaced(&whole, &count(2), &count(absurd)));
        assert!(said.contains("missing") || said.contains("at most"), "{absurd}: {said}");
    }
    let positions = |value: u32| {
        [&b"llama.context_length"[..], &4u32.to_le_bytes(), &value.to_le_bytes()].concat()
    };
    assert!(refused(&replaced(&whole, &positions(64), &positions(1 << 24))).contains("positions"));
}

#[test]
fn absurd_sizes_and_malformed_vocabularies_are_errors() {
    let folder = Folder::new("absurd");
    let model = model(Family::Llama, true);
    save(&model, &tokenizer(), &folder.0).unwrap();
    let config = folder.0.join("config.json");
    let text = std::fs::read_to_string(&config).unwrap();
    let open = || load(&folder.0, Arc::new(Cpu), false).err().expect("must not load").to_string();
    for (key, old) in [
        ("vocab_size", "272"),
        ("hidden_size", "32"),
        ("intermediate_size", "96"),
        ("num_hidden_layers", "2"),
        ("num_attention_heads", "4"),
        ("num_key_value_heads", "2"),
        ("head_dim", "8"),
        ("max_position_embeddings", "64"),
    ] {
        for absurd in ["1", "1000000000", "16777216", "2147483648", "18446744073709551615"] {
            let old = format!("\"{key}\": {old}");
            assert!(text.contains(&old), "{text}");
            std::fs::write(&config, text.replace(&old, &format!("\"{key}\": {absurd}"))).unwrap();
            if key != "max_position_embeddings" || absurd != "1" {
                open();
            }
        }
    }
    std::fs::write(&config, &text).unwrap();
    let vocabulary = folder.0.join("tokenizer.json");
    let whole: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&vocabulary).unwrap()).unwrap();
    for (pointer, value) in [
        // Shapes that the library itself panics over, or might.
        ("/added_tokens/0/id", serde_json::json!(4_294_967_295u64)),
        ("/model/merges", serde_json::json!(["ab"])),
        ("/model/vocab", serde_json::json!({"<|tactic|>": 7, "<|end|>": 4_294_967_295u64})),
        ("/normalizer", serde_json::json!({"type": "Precompiled", "precompiled_charsmap": "AA=="})),
        (
            "/pre_tokenizer",
            serde_json::json!({"type": "Split", "pattern": {"Regex": "(("},
            "behavior": "Isolated", "invert": false}),
        ),
        (
            "/post_processor",
            serde_json::json!({"type": "TemplateProcessing", "single": [],
            "pair": [{"SpecialToken": {"id": "X", "type_id": 0}}], "special_tokens": {}}),
        ),
        (
            "/truncation",
            serde_json::json!({"direction": "Right", "max_length": 0,
            "strategy": "LongestFirst", "stride": 5}),
        ),
    ] {
        let mut damaged = whole.clone();
        *damaged.pointer_mut(pointer).unwrap() = value;
        std::fs::write(&vocabulary, damaged.to_string()).unwrap();
        // It loads or it does not; nothing panics, then or later.
        if let Ok((_, tokenizer)) = load(&folder.0, Arc::new(Cpu), false) {
            let _ = tokenizer.prompt("|- ( ph -> ps )").map(|ids| tokenizer.decode(&ids));
        }
    }
}
