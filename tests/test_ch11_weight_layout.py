def test_x():
    import minisgl.layers.layout
